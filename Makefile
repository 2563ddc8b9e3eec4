# Everything a developer and CI need. Only Python 3.11 to 3.14 and make must be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
# what runs on PostgreSQL too
ON_A_DATABASE := $(addprefix tests/integration/,runs elsewhere replays reconciling edges test_story.py)

.PHONY: venv demo test check lint soak versions bench compile lock clean

venv: $(VENV)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml
	@echo "1 of 3: a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "2 of 3: Airflow and what else is needed, by pip: about two minutes the first time"
	@$(BIN)/python examples/pip_progress.py --require-hashes --no-deps -r requirements.lock
	@echo "3 of 3: this package"
	@$(BIN)/python examples/pip_progress.py --no-deps --no-build-isolation -e .
	@touch $@

demo: venv
	@$(BIN)/python examples/demo.py $(ARGS)

test: venv
	$(BIN)/python -m pytest -m "not soak" -n $(WORKERS) $(ARGS)

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint
	$(MAKE) test

soak: venv
	$(BIN)/python -m pytest -m soak -n $(WORKERS) $(ARGS)
	CHRONON_TEST_DATABASE=postgresql $(BIN)/python -m pytest -n $(WORKERS) $(ON_A_DATABASE) $(ARGS)
	$(MAKE) versions

# The unit tests on the oldest and the newest Python that are there, and on both Airflows.
versions:
	$(PYTHON) tests/versions.py $(PAIRS)

bench: venv
	$(BIN)/python bench/dags.py
	$(BIN)/python bench/timetable.py
	PYTHONPATH=.:examples $(BIN)/python bench/commands.py
	PYTHONPATH=.:examples $(BIN)/python bench/drain.py
	PYTHONPATH=.:examples $(BIN)/python bench/operators.py
	PYTHONPATH=.:examples $(BIN)/python bench/waiting.py

# The sample repo's compiled output, by the real compiler, in a venv of its own: its pins clash with Airflow's.
compile:
	$(PYTHON) examples/compile.py

# Needs uv. The lists of exact versions hold hashes and name no index.
lock:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate -o requirements.lock
	uv pip compile requirements-compile.in --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate -o requirements-compile.lock
	uv pip compile requirements-fab.in --no-deps --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate -o requirements-fab.lock

clean:
	rm -rf $(VENV) .venvs .venv-compile .demo

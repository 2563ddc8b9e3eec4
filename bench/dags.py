"""From compiled confs to built and serialised DAGs, beside the same DAGs written by hand in one Python file.

Every figure comes from a child forked after the imports, as in Airflow's dag-processor: nothing is cached from an
earlier parse. Absolute times depend on the machine and what else it does; the ratio of one run is what counts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="airflow-chronon-bench-"))

from airflow.providers.standard.operators.bash import BashOperator  # noqa: F401
from airflow.providers.standard.sensors.filesystem import FileSensor  # noqa: F401
from airflow.serialization.serialized_objects import DagSerialization

from airflow_chronon.airflow.dags.conf import build_conf_dag  # noqa: F401
from airflow_chronon.dags import build_dags

CORPUS = Path(__file__).resolve().parents[1] / "tests" / "data" / "main"
DAGS_PER_COPY = 59  # the good confs of the corpus
_TEAMS = re.compile(r"checkout|growth|opsdef|risk")

Phases = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dags", type=int, default=1000, help="at least so many DAGs (default 1000)")
    parser.add_argument("--repeat", type=int, default=3, help="the best of so many runs counts (default 3)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root, loader = Path(folder, "chronon"), Path(folder, "by_hand.py")
        compare(root, loader, wanted=options.dags, repeat=options.repeat)


def compare(root: Path, loader: Path, *, wanted: int, repeat: int) -> None:
    def write_loader() -> Phases:
        dags = build_dags(conf_root=root)
        loader.write_text(by_hand(dags), encoding="utf-8")
        return {"dags": len(dags), "tasks": sum(len(dag.tasks) for dag in dags.values())}

    for number in range(-(-wanted // DAGS_PER_COPY)):
        copy_corpus(root / "compiled", number)
    counts = in_a_fork(write_loader)
    print(f"{counts['dags']} DAGs of {counts['tasks']} tasks")
    asked = "group_by.checkout0x.purchases.daily__3"
    ours, hand = best(lambda: from_confs(root), repeat), best(lambda: from_python(loader), repeat)
    show("from confs", ours)
    show("by hand", hand)
    ratio = sum(ours.values()) / sum(hand.values())
    print(f"ratio: {ratio:.2f} (aim: at most 1.5)")
    os.environ["_AIRFLOW_PARSING_CONTEXT_DAG_ID"] = asked
    show(
        "one DAG asked for, as when a task starts",
        best(lambda: timed({"build": lambda: build_dags(conf_root=root)}), repeat),
    )


def copy_corpus(target: Path, number: int) -> None:
    """One more copy of the corpus: its teams, and so every name, table and link among them, carry a number."""

    def renamed(text: str) -> str:
        return _TEAMS.sub(lambda match: f"{match[0]}{number}x", text)

    for file in sorted(path for path in CORPUS.rglob("*") if path.is_file()):
        path = target / renamed(str(file.relative_to(CORPUS)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(renamed(file.read_text(encoding="utf-8")), encoding="utf-8")


def by_hand(dags: Mapping[str, Any]) -> str:
    """A Python file as a person would write it: as many DAGs and tasks, wired alike, of Airflow's own operators."""
    lines = [
        "from datetime import datetime, timezone",
        "from airflow.providers.standard.operators.bash import BashOperator",
        "from airflow.providers.standard.operators.empty import EmptyOperator",
        "from airflow.providers.standard.sensors.filesystem import FileSensor",
        "from airflow.sdk import DAG, Asset, Param",
    ]
    for number, dag in enumerate(dags.values()):
        summary = dag.timetable.summary
        schedule = repr(summary.split(" | ")[0]) if summary != "@never" else "None"
        lines += [
            f"with DAG({dag.dag_id!r}, schedule={schedule}, start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),",
            f"         catchup=False, max_active_runs=64, description={dag.description!r}, doc_md='A conf.',",
            f"         tags={sorted(dag.tags)!r}, default_args={{'owner': 'bench'}},",
            "         params={'start_ds': Param(None, type=['null', 'string']),",
            "                 'end_ds': Param(None, type=['null', 'string'])}",
            f") as dag_{number}:",
        ]
        names = {task.task_id: f"t{index}" for index, task in enumerate(dag.tasks)}
        for task in dag.tasks:
            lines.append(f"    {names[task.task_id]} = {_plain_task(task)}")
        for task in dag.tasks:
            lines += [f"    {names[task.task_id]} >> {names[after]}" for after in sorted(task.downstream_task_ids)]
    return "\n".join(lines) + "\n"


def _plain_task(task: Any) -> str:
    if task.task_id.startswith(("wait.", "gate.")):
        where = "filepath='/warehouse/{{ ds }}', poke_interval=60, deferrable=True, retries=0"
        return f"FileSensor(task_id={task.task_id!r}, {where})"
    if task.task_id == "ready":
        return "EmptyOperator(task_id='ready')"
    command = "bash_command='zipline run --start-ds {{ ds }} --end-ds {{ ds }}'"
    if task.task_id == "landed":
        outlets = ", ".join(f"Asset({asset.name!r})" for asset in task.outlets)
        rule = "trigger_rule='none_failed_min_one_success'"
        return f"BashOperator(task_id='landed', {command}, outlets=[{outlets}], {rule})"
    return f"BashOperator(task_id={task.task_id!r}, {command}, retries=2, max_active_tis_per_dag=4)"


def from_confs(root: Path) -> Phases:
    built: dict[str, Any] = {}
    return timed(
        {
            "build": lambda: built.update(build_dags(conf_root=root)),
            "serialise": lambda: [DagSerialization.to_dict(dag) for dag in built.values()],
        }
    )


def from_python(loader: Path) -> Phases:
    names: dict[str, Any] = {}

    def build() -> None:
        exec(compile(loader.read_text(encoding="utf-8"), str(loader), "exec"), names)

    def serialise() -> None:
        for name, dag in names.items():
            if name.startswith("dag_"):
                DagSerialization.to_dict(dag)

    return timed({"build": build, "serialise": serialise})


def timed(steps: Mapping[str, Callable[[], object]]) -> Phases:
    """Processor seconds of each step: what other processes do beside us counts less."""
    phases = {}
    for name, step in steps.items():
        before = time.process_time()
        step()
        phases[name] = time.process_time() - before
    return phases


def best(measure: Callable[[], Phases], repeat: int) -> Phases:
    return min((in_a_fork(measure) for _ in range(repeat)), key=lambda phases: sum(phases.values()))


def in_a_fork(measure: Callable[[], Phases]) -> Phases:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(measure()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    if not text:
        sys.exit("a measurement failed")
    phases: Phases = json.loads(text)
    return phases


def show(title: str, phases: Phases) -> None:
    parts = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in phases.items())
    print(f"{title}: {sum(phases.values()):.2f} s ({parts})")


if __name__ == "__main__":
    main()

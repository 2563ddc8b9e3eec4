"""SQL of confs reads the tables of the warehouse and nothing else (S3)."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from airflow_chronon.core.calendar.instants import DAY, TimeWindow, parse_instant
from airflow_chronon.engine.local import LocalRunner
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.errors import JobFailed, JobRefused
from airflow_chronon.sql.expressions import ExpressionRequest, Outcome, evaluated
from airflow_chronon.sql.parquet import Budget, connect
from tests.support.schedules import spec_of

SECRET = "hunter2-of-the-machine"
ONE_DAY = TimeWindow(parse_instant("2026-06-01"), parse_instant("2026-06-02"))

#: What stands where a table may; ``{file}`` is a file with a secret, outside the warehouse.
PLACES = [
    "'{file}'",
    '"{file}"',
    "`{file}`",
    "text.`{file}`",
    "parquet.`{file}`",
    "`../secret.csv`",
    "`data.orders/../../secret.csv`",
    "`..`",
    "`{folder}/*`",
    "`s3://elsewhere/secret.parquet`",
    "`http://127.0.0.1:9/secret.csv`",
    "`https://example.invalid/secret.csv`",
    "read_text('{file}')",
    "`read_text`('{file}')",
    "main.read_text('{file}')",
    "read_text('{folder}/data.orders/ds=2026-06-01/a.parquet')",
    "read_blob('/proc/self/environ')",
    "read_csv('{file}')",
    "read_csv_auto('{file}')",
    "read_json('{file}')",
    "read_ndjson_objects('{file}')",
    "read_parquet('{file}')",
    "read_parquet('{folder}/data.orders/ds=*/*.parquet')",
    "read_parquet('s3://elsewhere/secret.parquet')",
    "read_parquet('https://example.invalid/secret.parquet')",
    "read_files('{file}')",
    "read_duckdb('{file}')",
    "parquet_scan('{file}')",
    "parquet_metadata('{file}')",
    "parquet_kv_metadata('{file}')",
    "sqlite_scan('{file}', 'x')",
    "iceberg_scan('{file}')",
    "pandas_scan(1)",
    "arrow_scan(1, 2, 3)",
    "glob('{folder}/../*')",
    "sniff_csv('{file}')",
    "query('SELECT 1')",
    "query_table('x')",
    "identifier('x')",
    "TABLE(read_text('{file}'))",
    "LATERAL read_text('{file}')",
    "json_execute_serialized_sql(json_serialize_sql('SELECT 1'))",
    "duckdb_settings()",
    "duckdb_secrets()",
    "duckdb_extensions()",
    "pragma_platform()",
    "which_secret('s3://x', 's3')",
    "enable_logging()",
    "information_schema.tables",
    "pg_catalog.pg_settings",
    "duckdb_settings",
    "sqlite_master",
    "pragma_database_list",
    "a_variable_of_python",
]

#: Calls that stand where a value may.
CALLS = [
    "getenv('HOME')",
    "`getenv`('HOME')",
    "main.getenv('HOME')",
    "current_setting('temp_directory')",
    "getvariable('x')",
    "write_log('x')",
    "pg_sleep(1)",
    "sleep_ms(1)",
    "read_text('{file}')",
    "duckdb_secrets()",
]

#: Statements that are no query.
STATEMENTS = [
    "ATTACH '{file}'",
    "COPY (SELECT 1) TO '{file}'",
    "COPY data.orders TO '{file}'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "FORCE INSTALL httpfs",
    "SET memory_limit = '1TB'",
    "SET GLOBAL enable_external_access = true",
    "RESET memory_limit",
    "PRAGMA memory_limit = '1TB'",
    "PRAGMA database_list",
    "CREATE SECRET (TYPE s3)",
    "CREATE PERSISTENT SECRET s (TYPE s3)",
    "EXPORT DATABASE '{folder}'",
    "IMPORT DATABASE '{folder}'",
    "CALL enable_logging()",
    "USE data",
    "SHOW TABLES",
    "DESCRIBE data.orders",
    "SUMMARIZE data.orders",
    "CREATE TABLE x AS SELECT 1",
    "CREATE MACRO f() AS TABLE SELECT 1",
    "INSERT INTO data.orders SELECT 1",
    "DELETE FROM data.orders",
    "DROP TABLE data.orders",
    "SELECT 1; SELECT 2",
    "SELECT * INTO x FROM data.orders",
    "WITH gone AS (DELETE FROM data.orders) SELECT 1",
    "EXECUTE x",
    "PREPARE x AS SELECT 1",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A warehouse with one table, and a file with a secret beside it."""
    root = tmp_path / "warehouse"
    folder = root / "data.orders" / "ds=2026-06-01"
    folder.mkdir(parents=True)
    duckdb.sql("SELECT 1 AS id, 7 AS amount").write_parquet(str(folder / "a.parquet"))
    (tmp_path / "secret.csv").write_text(f"word\n{SECRET}\n")
    return root


@pytest.fixture
def written(root: Path):
    """What stands in the table, written for this test's files."""
    return lambda text: text.format(file=root.parent / "secret.csv", folder=root)


@pytest.fixture
def run(root: Path):
    """Run a staging query for one day; gives its log and the error that it ended with."""

    def run(query: str, **more) -> tuple[str, JobFailed | None]:
        log: list[str] = []
        settings = {name: more.pop(name) for name in tuple(more) if name in ("timeout", "memory_limit", "spill_limit")}
        document = {"query": query, "metaData": {}, **more}
        job = JobRequest("staging_query", "n", "backfill", document, "p", "out.orders", spec_of(DAY), ONE_DAY)
        try:
            LocalRunner(str(root), **{"threads": 1} | settings).run(job, log.append)
        except JobFailed as error:
            return "\n".join(log), error
        return "\n".join(log), None

    return run


@pytest.fixture
def value_of(root: Path):
    """Evaluate an expression over ``data.orders``, in this process."""

    def value_of(expression: str, table: str = "data.orders"):
        return evaluated(ExpressionRequest(str(root), table, expression, "512MB", 512 << 20, 60))

    return value_of


def one_sentence(text: str) -> bool:
    return "\n" not in text and SECRET not in text and "HOME" not in text.replace("getenv('HOME')", "")


class TestAStagingQuery:
    @pytest.mark.parametrize("place", PLACES)
    def test_reads_nothing_but_tables(self, run, written, root, place):
        a_variable_of_python = [SECRET]  # noqa: F841  (DuckDB looks for such names where it may)
        _, error = run(written(f"SELECT *, '2026-06-01' AS ds FROM {place} AS t"))
        assert isinstance(error, JobRefused) and one_sentence(str(error))
        assert not (root / "out.orders").exists()

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT (SELECT count(*) FROM read_text('{file}')) AS n, ds FROM data.orders",
            "SELECT ds FROM data.orders WHERE EXISTS (SELECT 1 FROM read_csv('{file}'))",
            "SELECT ds FROM data.orders JOIN read_csv('{file}') ON true",
            "SELECT ds FROM data.orders, LATERAL (SELECT * FROM read_text('{file}'))",
            "WITH secret AS (SELECT * FROM read_text('{file}')) SELECT '2026-06-01' AS ds FROM secret",
            "SELECT ds FROM data.orders UNION ALL SELECT content FROM read_text('{file}')",
            "SELECT ds FROM data.orders LATERAL VIEW read_text('{file}') AS t",
        ],
    )
    def test_reads_nothing_but_tables_in_whatever_part(self, run, written, query):
        _, error = run(written(query))
        assert isinstance(error, JobRefused) and one_sentence(str(error))

    @pytest.mark.parametrize("call", CALLS)
    def test_calls_nothing_that_looks_elsewhere(self, run, written, call):
        _, error = run(written(f"SELECT {call} AS x, ds FROM data.orders"))
        assert isinstance(error, JobRefused) and one_sentence(str(error)) and "no query may call it" in str(error)

    @pytest.mark.parametrize("statement", STATEMENTS)
    def test_is_one_select(self, run, written, statement):
        _, error = run(written(statement))
        assert isinstance(error, JobRefused) and one_sentence(str(error))

    @pytest.mark.parametrize("place", ["read_text('{file}')", "`{file}`", "duckdb_secrets()"])
    def test_reads_nothing_but_tables_in_its_setups(self, run, written, place):
        setup = written(f"CREATE TEMPORARY VIEW v AS SELECT * FROM {place}")
        _, error = run("SELECT '2026-06-01' AS ds FROM v", setups=[setup])
        assert isinstance(error, JobRefused) and one_sentence(str(error)) and "(S3)" in str(error)

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT a.id, b.amount, a.ds FROM data.orders AS a JOIN data.orders AS b USING (id)",
            "WITH t AS (SELECT * FROM data.orders) SELECT id, row_number() OVER (ORDER BY id) AS n, ds FROM t",
            "SELECT date_add(ds, 1) AS day, nvl(amount, 0) AS amount, ds FROM `data`.`orders` TABLESAMPLE (100 PERCENT)",
            "SELECT x, ds FROM data.orders LATERAL VIEW explode(array(id, amount)) t AS x",
            "SELECT r.range AS x, ds FROM data.orders CROSS JOIN range(3) AS r",
            "SELECT ds, count(*) AS n FROM data.orders WHERE id IN (SELECT id FROM data.orders) GROUP BY ds",
            "SELECT transform(array(id), x -> x + 1) AS x, ds FROM data.orders",
            "SELECT id, ds FROM v",
        ],
    )
    def test_that_reads_tables_runs(self, run, query):
        log, error = run(query, setups=["CREATE TEMPORARY VIEW v AS SELECT * FROM data.orders"])
        assert error is None and "out.orders ds=2026-06-01" in log


class TestAnExpression:
    @pytest.mark.parametrize("place", PLACES)
    def test_reads_nothing_but_tables(self, value_of, written, place):
        a_variable_of_python = [SECRET]  # noqa: F841
        answer = value_of(written(f"(SELECT max(t) FROM {place} AS t) IS NULL"))
        assert answer.outcome in (Outcome.NEVER, Outcome.TROUBLE)  # a table that is not there may come
        assert answer.value is None and one_sentence(str(answer.fault))

    @pytest.mark.parametrize("call", CALLS)
    def test_calls_nothing_that_looks_elsewhere(self, value_of, written, call):
        answer = value_of(written(call))
        assert answer.outcome is Outcome.NEVER and "no query may call it" in str(answer.fault)

    @pytest.mark.parametrize("statement", [*STATEMENTS, "SELECT 1", "1 AS x", "*", "1) FROM x WHERE (true", "-- x", ""])
    def test_is_one_expression(self, value_of, written, statement):
        answer = value_of(written(statement))
        assert answer.outcome is Outcome.NEVER and one_sentence(str(answer.fault))

    @pytest.mark.parametrize(
        "expression", ["(" * 5000 + "1" + ")" * 5000, "-" * 50_000 + "1", "NOT " * 20_000 + "true"]
    )
    def test_that_is_nested_without_end_is_refused(self, value_of, expression):
        answer = value_of(expression)
        assert answer.outcome is Outcome.NEVER

    def test_gives_no_long_text_to_a_log(self, value_of):
        answer = value_of("repeat('x', 100000)")
        assert answer.outcome is Outcome.TROUBLE and len(str(answer.fault)) < 400

    def test_may_read_other_tables(self, value_of):
        assert value_of("(SELECT max(o.id) FROM data.orders AS o) = max(id)").value is True


class TestLinks:
    """A link that leads out of the warehouse, wherever it stands."""

    @pytest.fixture(params=["file", "partition", "table"])
    def linked(self, request, root: Path) -> Path:
        outside = root.parent / "elsewhere"
        outside.mkdir()
        duckdb.sql(f"SELECT '{SECRET}' AS word").write_parquet(str(outside / "a.parquet"))
        table = root / "data.linked"
        partition = table / "ds=2026-06-01"
        places = {"file": partition / "a.parquet", "partition": partition, "table": table}
        place = places[request.param]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(outside / "a.parquet" if request.param == "file" else outside)
        return place

    def test_is_not_followed_by_a_query(self, run, linked):
        _, error = run("SELECT *, '2026-06-01' AS ds FROM data.linked")
        assert isinstance(error, JobRefused) and one_sentence(str(error))
        assert f"{linked} is a link that leads out of" in str(error)

    def test_is_not_followed_by_an_expression(self, value_of, linked):
        answer = value_of("max(word)", "data.linked")
        assert answer.value is None and f"{linked} is a link that leads out of" in str(answer.fault)

    def test_inside_the_warehouse_is_followed(self, run, root):
        (root / "data.again").symlink_to(root / "data.orders")
        assert run("SELECT id, ds FROM data.again")[1] is None

    def test_a_warehouse_may_be_a_link_itself(self, root, tmp_path):
        (tmp_path / "link").symlink_to(root)
        request = ExpressionRequest(str(tmp_path / "link"), "data.orders", "max(ds)", "512MB", 512 << 20, 60)
        assert evaluated(request).value == "2026-06-01"

    def test_a_warehouse_may_have_signs_of_patterns_in_its_name(self, root, tmp_path):
        root.rename(tmp_path / "a[1]*?")
        request = ExpressionRequest(str(tmp_path / "a[1]*?"), "data.orders", "max(ds)", "512MB", 512 << 20, 60)
        assert evaluated(request).value == "2026-06-01"


class TestTheEngineItself:
    """What its own settings refuse, whatever a query looks like to the check before it."""

    @pytest.fixture
    def connection(self, root):
        with connect(root, Budget("512MB", threads=1)) as connection:
            yield connection

    @pytest.mark.parametrize(
        "statement",
        [
            "SELECT * FROM read_text('{file}')",
            "SELECT * FROM read_blob('/proc/self/environ')",
            "SELECT * FROM read_csv('{file}')",
            "SELECT * FROM '{file}'",
            "SELECT * FROM glob('{folder}/../*')",
            "SELECT * FROM sniff_csv('{file}')",
            "SELECT * FROM read_csv('{folder}/../secret.csv')",
            "SELECT * FROM read_csv('{folder}-beside/secret.csv')",
            "SELECT * FROM read_parquet('s3://elsewhere/x')",
            "SELECT * FROM read_parquet('http://127.0.0.1:9/x')",
            "SELECT * FROM query('SELECT * FROM read_text(''{file}'')')",
            "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM read_text(''{file}'')'))",
            "SELECT * FROM a_variable_of_python",
            "SELECT getenv('HOME')",
            "ATTACH '{file}'",
            "COPY (SELECT 1) TO '{file}'",
            "EXPORT DATABASE '{folder}/../x'",
            "INSTALL httpfs",
            "LOAD httpfs",
            "CREATE PERSISTENT SECRET s (TYPE s3)",
            "SET enable_external_access = true",
            "SET allowed_directories = ['/']",
            "SET memory_limit = '1TB'",
            "RESET memory_limit",
            "SET threads = 64",
            "SET temp_directory = '/tmp'",
            "SET lock_configuration = false",
            "PRAGMA memory_limit = '1TB'",
        ],
    )
    def test_refuses(self, connection, written, statement):
        a_variable_of_python = duckdb.sql("SELECT 1")  # noqa: F841
        with pytest.raises(duckdb.Error) as caught:
            connection.execute(written(statement)).fetchall()
        assert SECRET not in str(caught.value)

    def test_knows_no_secrets(self, connection):
        assert connection.execute("SELECT * FROM duckdb_secrets()").fetchall() == []


class TestBudgets:
    ENDLESS = "SELECT sum(range % 7) AS n, '2026-06-01' AS ds FROM range(1000000000000000)"
    WIDE = "SELECT range AS n, md5(range::string) AS m, '2026-06-01' AS ds FROM range(3000000) ORDER BY m"

    def test_a_query_ends_when_its_time_is_up(self, run):
        _, error = run(self.ENDLESS, timeout=1)
        assert "not done in 1s, which is all that runner.timeout allows" in str(error) and one_sentence(str(error))

    def test_a_query_that_needs_more_than_it_may_names_the_settings(self, run, root):
        _, error = run(self.WIDE, memory_limit="100MB", spill_limit="1MB")
        assert "raise runner.memory_limit (100MB) or runner.spill_limit (1MB)" in str(error) and one_sentence(
            str(error)
        )
        assert os.listdir(root / "out.orders") == []

    def test_what_does_not_fit_into_memory_is_written_below_the_table_and_removed(self, run, root):
        log, error = run(self.WIDE, memory_limit="100MB")
        assert error is None and "3000000 rows" in log
        assert os.listdir(root / "out.orders") == ["ds=2026-06-01"]

    @pytest.mark.parametrize(
        "greedy",
        [
            "length(repeat('x', 3000000000))",
            "size(sequence(1, 400000000))",
            "size(transform(sequence(1, 20), x -> sequence(1, 40000000)))",
        ],
    )
    def test_what_the_engine_does_not_count_is_bounded_too(self, run, greedy):
        _, error = run(f"SELECT {greedy} AS n, '2026-06-01' AS ds", memory_limit="100MB")
        assert "raise runner.memory_limit (100MB)" in str(error) and one_sentence(str(error))
        assert resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY

    def test_work_that_no_interrupt_reaches_ends_its_task_all_the_same(self, root):
        """In a process of its own, as a task has one: the thread that is left behind goes with it."""
        code = """
import os, sys
from airflow_chronon.engine.local import runner
from airflow_chronon.errors import JobFailed
from tests.engine.conftest import DAILY
from airflow_chronon.core.calendar.instants import TimeWindow, parse_instant
from airflow_chronon.engine.protocol import JobRequest
runner._LAST_SECONDS = 0.5
window = TimeWindow(parse_instant("2026-06-01"), parse_instant("2026-06-02"))
job = JobRequest("staging_query", "n", "backfill", {"query": sys.argv[2], "metaData": {}}, "p", "out.orders", DAILY, window)
try:
    runner.LocalRunner(sys.argv[1], threads=1, timeout=1).run(job, print)
except JobFailed as error:
    print(error, flush=True)
os._exit(0)  # Airflow ends a task's process that has told how it ended
"""
        endless = (
            "SELECT jaro_winkler_similarity(a, b) AS n, '2026-06-01' AS ds "
            "FROM (SELECT repeat('a', 30000000) AS a, repeat('b', 30000000) || 'a' AS b)"
        )
        command = [sys.executable, "-c", code, str(root), endless]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert "not done in 1s, which is all that runner.timeout allows" in done.stdout, done.stderr
        assert not list(root.glob("out.orders/ds=*"))

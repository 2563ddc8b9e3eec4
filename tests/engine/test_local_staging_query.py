"""Staging queries in the embedded engine, over real Parquet folders."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from pathlib import Path

import duckdb
import pytest

from airflow_chronon.catalogs.filesystem import FilesystemCatalog
from airflow_chronon.core.calendar.instants import HOUR
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec, partition_format
from airflow_chronon.engine.local import LocalRunner
from airflow_chronon.engine.protocol import NothingToWrite
from airflow_chronon.errors import JobFailed, JobRefused

THREE_HOURS = PartitionSpec(PartitionGrid(3 * HOUR, HOUR), partition_format("yyyy-MM-dd-HH-mm"))
BETWEEN = "ds BETWEEN {{ start_date }} AND {{ end_date }}"


@pytest.fixture
def run(warehouse, make_job):
    """Run a staging query and give its log."""

    def run(query, **job):
        log: list[str] = []
        LocalRunner(str(warehouse), threads=2).run(make_job(query, **job), log.append)
        return log

    return run


@pytest.fixture
def orders(land):
    for day in ("2026-05-31", "2026-06-01", "2026-06-02"):
        land("data.orders", f"SELECT range AS id, '{day}' || range AS note FROM range(2)", ds=day)


class TestWhatIsWritten:
    def test_a_partition_lands_with_its_rows(self, run, orders, rows, warehouse):
        log = run(f"SELECT * FROM data.orders WHERE {BETWEEN}")
        assert rows("2026-06-01") == [(0, "2026-06-010"), (1, "2026-06-011")]
        assert sorted(os.listdir(warehouse / "out.orders")) == ["ds=2026-06-01"]
        assert sorted(os.listdir(warehouse / "out.orders" / "ds=2026-06-01")) == ["_SUCCESS", "part-0.parquet"]
        assert log[-1] == "out.orders ds=2026-06-01: 2 rows"

    def test_a_range_writes_one_file_for_each_label(self, run, orders, warehouse, rows):
        run(f"SELECT id, ds FROM data.orders WHERE {BETWEEN}", start="2026-05-31", end="2026-06-03")
        labels = {"2026-05-31", "2026-06-01", "2026-06-02"}
        assert FilesystemCatalog(str(warehouse)).list_partitions("out.orders").labels("ds") == labels
        assert [rows(label) for label in sorted(labels)] == [[(0,), (1,)]] * 3

    def test_a_label_without_rows_lands_empty_with_its_columns(self, run, orders, warehouse, rows):
        run(f"SELECT id, note, ds FROM data.orders WHERE {BETWEEN}", start="2026-06-02", end="2026-06-05")
        assert (rows("2026-06-02"), rows("2026-06-04")) == ([(0, "2026-06-020"), (1, "2026-06-021")], [])
        path = warehouse / "out.orders" / "ds=2026-06-04" / "part-0.parquet"
        assert duckdb.read_parquet(str(path), hive_partitioning=False).columns == ["id", "note"]

    def test_labels_with_odd_signs_are_escaped_in_folders(self, run, land, rows, warehouse):  # C7
        spec = PartitionSpec(PartitionGrid(HOUR), partition_format("yyyy/MM/dd HH:mm"))
        land("data.hourly", "SELECT 7 AS id", ds="2026/06/01 03:00")
        run("SELECT * FROM data.hourly", spec=spec, start="2026-06-01T03:00", end="2026-06-01T04:00")
        assert rows("2026/06/01 03:00") == [(7,)]
        assert os.listdir(warehouse / "out.orders") == ["ds=2026%2F06%2F01%2003%3A00"]

    def test_a_sum_of_whole_numbers_is_a_whole_number_of_64_bits_as_in_spark(self, run, orders, warehouse, rows):
        run(f"SELECT SUM(id) AS Total, ds FROM data.orders WHERE {BETWEEN} GROUP BY ds")
        path = warehouse / "out.orders" / "ds=2026-06-01" / "part-0.parquet"
        found = duckdb.read_parquet(str(path), hive_partitioning=False)
        assert (found.columns, [str(each) for each in found.types], found.fetchall()) == (["Total"], ["BIGINT"], [(1,)])

    def test_a_sum_that_does_not_fit_into_64_bits_fails(self, run, land, rows):
        land("data.big", "SELECT 9223372036854775807 AS n FROM range(2)", ds="2026-06-01")
        with pytest.raises(JobFailed, match="INT64"):
            run(f"SELECT SUM(n) AS n, ds FROM data.big WHERE {BETWEEN} GROUP BY ds")

    def test_three_hourly_labels_stay_text(self, run, land, rows):
        land("data.alerts", "SELECT 1 AS n", ds="2026-06-01-01-00")
        run(
            f"SELECT n, ds FROM data.alerts WHERE {BETWEEN}",
            spec=THREE_HOURS,
            start="2026-06-01T01:00",
            end="2026-06-01T04:00",
        )
        assert rows("2026-06-01-01-00") == [(1,)]

    @pytest.mark.parametrize("column", ["DS", "to_date(ds) AS ds", "date_add(date_sub(ds, 1), 1) AS ds"])
    def test_the_label_may_be_a_date_or_in_other_case(self, run, orders, rows, column):
        run(f"SELECT id, {column} FROM data.orders WHERE {BETWEEN}")
        assert rows("2026-06-01") == [(0,), (1,)]

    def test_a_result_of_labels_alone_lands(self, run, orders, rows):
        run(f"SELECT DISTINCT ds FROM data.orders WHERE {BETWEEN}")
        assert rows("2026-06-01") == [("2026-06-01",)]

    def test_a_replay_gives_the_same_rows(self, run, orders, rows, warehouse):  # C28
        query = (
            f"SELECT ds, id % 2 AS odd, count(*) AS n, max(note) AS note FROM data.orders WHERE {BETWEEN} GROUP BY 1, 2"
        )
        run(query)
        first = rows("2026-06-01")
        run(query)
        assert rows("2026-06-01") == first and first
        assert sorted(os.listdir(warehouse / "out.orders" / "ds=2026-06-01")) == ["_SUCCESS", "part-0.parquet"]

    def test_the_written_table_can_be_read_by_the_next_query(self, run, orders, rows, make_job, warehouse):
        run(f"SELECT id, ds FROM data.orders WHERE {BETWEEN}")
        run(f"SELECT id + (SELECT max(id) FROM out.orders) AS id, ds FROM data.orders WHERE {BETWEEN}")
        assert rows("2026-06-01") == [(1,), (2,)]


class TestTables:
    @pytest.mark.parametrize(
        "query",
        [
            "SELECT o.id, o.ds FROM `data`.`orders` AS o WHERE o.{}",
            "SELECT id, ds FROM spark_catalog.data.orders WHERE {}",
            "SELECT spark_catalog.data.orders.id, orders.ds FROM spark_catalog.data.orders WHERE {}",
            "SELECT data.orders.id, data.orders.ds FROM data.orders WHERE {}",
            "WITH orders AS (SELECT * FROM data.orders) SELECT id, ds FROM orders WHERE {}",
            "WITH a AS (SELECT * FROM data.orders), b AS (SELECT * FROM a) SELECT id, ds FROM b WHERE {}",
            "SELECT id, ds FROM data.orders WHERE id IN (SELECT max(id) FROM data.orders GROUP BY id) AND {}",
            "SELECT /*+ BROADCAST(o) */ id, ds FROM data.orders o WHERE {} DISTRIBUTE BY id SORT BY id",
            "SELECT id, ds FROM (SELECT * FROM data.orders) WHERE {} AND id = 0 UNION SELECT 1, {{{{ end_date }}}}",
        ],
    )
    def test_every_way_to_name_a_table_is_bound(self, run, orders, rows, query):
        run(query.format(BETWEEN))
        assert rows("2026-06-01") == [(0,), (1,)]

    def test_a_common_table_expression_may_hide_a_table_of_its_own_name(self, run, land, rows):
        land("plain", "SELECT 5 AS id", ds="2026-06-01")
        run(f"WITH plain AS (SELECT * FROM plain WHERE {BETWEEN}) SELECT * FROM plain")
        assert rows("2026-06-01") == [(5,)]

    def test_an_unpartitioned_table_is_read_too(self, run, land, rows):
        land("vendor.regions", "SELECT 'eu' AS region")
        run("SELECT region, {{ start_date }} AS ds FROM vendor.regions")
        assert rows("2026-06-01") == [("eu",)]

    def test_files_of_other_partitions_are_not_opened(self, run, orders, rows, warehouse):
        (warehouse / "data.orders" / "ds=2026-05-31" / "a.parquet").write_bytes(b"broken")
        run(f"SELECT id, ds FROM data.orders WHERE {BETWEEN}")
        assert rows("2026-06-01") == [(0,), (1,)]

    def test_leftovers_and_hidden_files_are_not_read(self, run, orders, rows, warehouse):
        good = warehouse / "data.orders" / "ds=2026-06-01" / "a.parquet"
        for place in ("_chronon-1-x/part-0.parquet", "ds=2026-06-01/_temporary/a.parquet", "ds=2026-06-01/.a.parquet"):
            path = warehouse / "data.orders" / place
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(good, path)
        run(f"SELECT id, ds FROM data.orders WHERE {BETWEEN}")
        assert rows("2026-06-01") == [(0,), (1,)]

    def test_files_with_other_columns_are_united(self, run, land, rows):
        land("data.orders", "SELECT 1 AS id", name="a.parquet", ds="2026-06-01")
        land("data.orders", "SELECT 2 AS id, 'new' AS note", name="b.parquet", ds="2026-06-01")
        run(f"SELECT id, note, ds FROM data.orders WHERE {BETWEEN}")
        assert sorted(rows("2026-06-01"), key=str) == [(1, None), (2, "new")]

    def test_the_newest_date_of_another_table_keeps_its_own_format(self, run, land, rows):
        for day in ("20260530", "20260531"):
            land("vendor.rates", f"SELECT {day} AS rate", dt=day)
        run("SELECT rate, {{ start_date }} AS ds FROM vendor.rates WHERE dt = '{{ max_date(table=vendor.rates) }}'")
        assert rows("2026-06-01") == [(20260531,)]

    @pytest.mark.parametrize(
        ("query", "message"),
        [
            ("SELECT * FROM no.such", "staging_query/team.orders.daily__1: the table no.such is not there"),
            ("SELECT * FROM data.empty", "the table data.empty has no data files"),
        ],
    )
    def test_a_missing_table_is_one_sentence(self, run, warehouse, query, message):
        (warehouse / "data.empty" / "ds=1").mkdir(parents=True)
        with pytest.raises(JobRefused, match=message):
            run(query)
        assert not (warehouse / "out.orders").exists()


class TestRowsThatTheRunDoesNotWrite:
    @pytest.mark.parametrize(
        ("query", "message"),
        [
            (
                "SELECT * FROM data.orders",
                "holds 2 rows labelled '2026-05-31' in ds, which this run .'2026-06-01'. does not write",
            ),
            ("SELECT id, NULL AS ds FROM data.orders", r"holds 6 rows without a label \(NULL\) in ds"),
            ("SELECT id FROM data.orders", "the result has no partition column 'ds'; its columns are id"),
            ("SELECT 1 AS one", "select the partition's label AS ds|Select the partition's label AS ds"),
        ],
    )
    def test_they_are_an_error_and_nothing_is_written(self, run, orders, warehouse, query, message):
        with pytest.raises(JobFailed, match=message):
            run(query)
        assert os.listdir(warehouse / "out.orders") == []

    def test_the_remedy_says_what_to_filter(self, run, orders):
        with pytest.raises(JobFailed, match=r"[Ff]ilter ds BETWEEN \{\{ start_date \}\} AND \{\{ end_date \}\}"):
            run("SELECT * FROM data.orders")


class TestRefusals:
    @pytest.mark.parametrize(
        ("job", "message"),
        [
            (
                {"conf_type": "group_by"},
                r"group_by/team.orders.daily__1: (sources|keyColumns|group|meta).*(required|lacks this field)",
            ),
            ({"conf_type": "join", "mode": "upload"}, "the embedded engine has no mode 'upload' for Joins"),
            ({"mode": "upload"}, "the embedded engine has no mode 'upload' for staging queries"),
            ({"engineType": 1}, "engineType: the embedded engine does not run queries for BIGQUERY"),
            (
                {"setups": ["ADD JAR s3://x/y.jar"]},
                r"setups\[0\]: the embedded engine cannot carry out the setup ADD JAR",
            ),
            ({"setups": ["CREATE TEMPORARY FUNCTION f AS 'a.B'"]}, "the setup CREATE TEMPORARY FUNCTION"),
            ({"setups": ["CREATE OR REPLACE TEMP FUNCTION f AS 'a.B'"]}, "the setup CREATE OR REPLACE"),
            ({"setups": ["SET spark.sql.shuffle.partitions = 8"]}, "the setup SET SPARK"),
            ({"setups": ["DROP TABLE data.orders"]}, "the setup DROP TABLE"),
            ({"query": "SELECT {{ ds }}"}, "the template {{ ds }} is not known"),
            ({"query": "SELECT 1 FROM"}, r"query: the SQL does not parse at line 1, column \d+"),
            ({"query": "INSERT INTO x SELECT 1"}, "a query must be one SELECT, this is an INSERT"),
            ({"query": "SELECT 1; SELECT 2"}, "there must be exactly one SQL statement, not 2"),
            ({"query": ""}, "there must be exactly one SQL statement, not 0"),
        ],
    )
    def test_what_the_engine_cannot_do_is_one_sentence_before_any_work(self, run, warehouse, job, message):
        with pytest.raises(JobRefused, match=message) as caught:
            run(job.pop("query", "SELECT 1 AS ds"), **job)
        assert "\n" not in str(caught.value)
        assert not warehouse.exists()

    def test_a_run_without_a_window_asks_for_one(self, run):  # H7
        with pytest.raises(NothingToWrite, match=r"no partition was asked for.*partition key, or start_ds and end_ds"):
            run("SELECT 1", start=None)

    def test_a_function_that_only_spark_has_is_one_sentence(self, run, warehouse):
        with pytest.raises(JobFailed, match=r"DuckDB says: .*java_method.*") as caught:
            run("SELECT java_method('a', 'b') AS x, {{ start_date }} AS ds")
        assert "\n" not in str(caught.value)
        assert os.listdir(warehouse / "out.orders") == []

    def test_duckdbs_lists_of_candidates_stay_out_of_the_sentence(self, run, orders):
        with pytest.raises(JobFailed, match="DuckDB says: Binder Error: No function matches") as caught:
            run(f"SELECT last_day(note) AS x, ds FROM data.orders WHERE {BETWEEN}")
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 400

    def test_a_setup_that_makes_a_view_is_carried_out(self, run, orders, rows):
        setups = [
            "CREATE OR REPLACE TEMPORARY VIEW o AS SELECT * FROM data.orders",
            "CREATE TEMP VIEW p AS SELECT * FROM O",
        ]
        run(f"SELECT id, ds FROM p WHERE {BETWEEN}", setups=setups)
        assert rows("2026-06-01") == [(0,), (1,)]

    @pytest.mark.parametrize(
        "name", ["part-0.parquet", "part-00000-x.snappy.parquet", "system=web/a.parquet", "000000_0"]
    )
    def test_data_of_others_is_neither_replaced_nor_read_beside_ours(self, run, land, orders, warehouse, name):
        foreign = land("out.orders", "SELECT 99 AS id", ds="2026-06-01")
        target = foreign.parent / name
        target.parent.mkdir(exist_ok=True)
        foreign.rename(target)
        before = target.read_bytes()
        with pytest.raises(JobRefused, match=f"{name} was not written by the embedded engine"):
            run(f"SELECT id, ds FROM data.orders WHERE {BETWEEN}")
        assert target.read_bytes() == before
        assert os.listdir(warehouse / "out.orders") == ["ds=2026-06-01"]


class TestLeftovers:
    def test_those_older_than_a_day_go_and_younger_ones_stay(self, run, orders, warehouse):
        old, young = (warehouse / "out.orders" / f"_chronon-{name}" for name in ("1-old", "2-young"))
        for folder in (old, young):
            folder.mkdir(parents=True)
            (folder / "part-0.parquet").write_bytes(b"half")
        long_ago = time.time() - 25 * 3600
        for path in (old, old / "part-0.parquet"):
            os.utime(path, (long_ago, long_ago))
        run(f"SELECT id, ds FROM data.orders WHERE {BETWEEN}")
        assert sorted(os.listdir(warehouse / "out.orders")) == ["_chronon-2-young", "ds=2026-06-01"]


class TestStop:
    ENDLESS = "SELECT count(*) AS n, {{ start_date }} AS ds FROM range(10000000000) a CROSS JOIN range(1000) b"

    def test_a_stop_interrupts_the_query_and_leaves_no_file(self, warehouse, make_job):
        runner, started = LocalRunner(str(warehouse)), threading.Event()

        def log(line: str) -> None:
            started.set()

        def stop() -> None:
            started.wait()
            runner.stop()

        stopper = threading.Thread(target=stop)
        stopper.start()
        with pytest.raises(JobFailed, match="the run was stopped before it was done"):
            runner.run(make_job(self.ENDLESS), log)
        stopper.join()
        assert not (warehouse / "out.orders").exists() or os.listdir(warehouse / "out.orders") == []

    def test_an_exception_from_a_signal_handler_ends_the_query_first(self, warehouse, make_job):
        def interrupt(*_):
            raise KeyboardInterrupt

        def log(line: str) -> None:
            if line.startswith("query for DuckDB"):
                os.kill(os.getpid(), signal.SIGUSR1)

        before = signal.signal(signal.SIGUSR1, interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                LocalRunner(str(warehouse)).run(make_job(self.ENDLESS), log)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert not [
            thread for thread in threading.enumerate() if thread.name.startswith("chronon-local") and thread.is_alive()
        ]
        assert not (warehouse / "out.orders").exists() or os.listdir(warehouse / "out.orders") == []

    def test_a_stop_before_the_start_holds(self, warehouse, make_job):
        runner = LocalRunner(str(warehouse))
        runner.stop()
        with pytest.raises(JobFailed, match="stopped"):
            runner.run(make_job("SELECT {{ start_date }} AS ds"), lambda line: None)

    def test_a_failed_run_does_not_stop_the_next_one(self, warehouse, make_job, rows):
        runner = LocalRunner(str(warehouse))
        with pytest.raises(JobFailed):
            runner.run(make_job("SELECT nothing"), lambda line: None)
        runner.run(make_job("SELECT 1 AS x, {{ start_date }} AS ds"), lambda line: None)
        assert rows("2026-06-01") == [(1,)]


def test_a_warehouse_whose_path_looks_like_a_pattern_works(tmp_path: Path, make_job, land, rows):
    root = tmp_path / "ware[h]ouse*"
    folder = root / "data.orders" / "ds=2026-06-01"
    folder.mkdir(parents=True)
    shutil.copy(land("x", "SELECT 3 AS id"), folder / "a.parquet")
    LocalRunner(str(root)).run(make_job(f"SELECT * FROM data.orders WHERE {BETWEEN}"), lambda line: None)
    assert (root / "out.orders" / "ds=2026-06-01" / "part-0.parquet").exists()

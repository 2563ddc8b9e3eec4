"""The gauges as they leave the machine: through Airflow's own StatsD, with tags or without, and through OpenTelemetry."""

from __future__ import annotations

import atexit
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from airflow.sdk.observability import stats
from airflow.sdk.observability.metrics.stats_utils import get_stats_factory

from airflow_chronon.airflow.metrics import Gauge, tell

DAG_ID = "group_by.shop.purchases.daily__3"


def use(monkeypatch: pytest.MonkeyPatch, **options: str) -> None:
    """Have Airflow pick its metrics by these settings, as it does when a task starts."""
    for option, value in options.items():
        monkeypatch.setenv(f"AIRFLOW__METRICS__{option.upper()}", value)
    stats.initialize(factory=get_stats_factory(), export_legacy_names=True)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    stats.initialize(factory=get_stats_factory(), export_legacy_names=True)


class StatsdListener:
    """What a StatsD server hears."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(10)
        self.port = self.socket.getsockname()[1]

    def lines(self, count: int) -> list[str]:
        return sorted(self.socket.recv(65536).decode() for _ in range(count))


@pytest.fixture
def statsd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., StatsdListener]]:
    listener = StatsdListener()

    def start(**options: str) -> StatsdListener:
        where = {"statsd_on": "True", "statsd_host": "127.0.0.1", "statsd_port": str(listener.port)}
        use(monkeypatch, **where, **options)
        return listener

    yield start
    listener.socket.close()


def tell_all(*, dag_id: str = DAG_ID, team: str = "shop") -> None:
    for value, each in enumerate(Gauge, start=1):
        tell(each, value, dag_id=dag_id, team=team)


def test_statsd_without_tags_keeps_dags_apart_by_name(statsd: Callable[..., StatsdListener]) -> None:
    listener = statsd()
    tell(Gauge.WAIT, 90.5, dag_id=DAG_ID, team="shop")
    tell(Gauge.WAIT, 0, dag_id="join.shop.training__1", team="shop")
    assert listener.lines(2) == [
        "airflow.chronon.wait_seconds.shop.group_by__shop__purchases__daily__3:90.5|g",
        "airflow.chronon.wait_seconds.shop.join__shop__training__1:0|g",
    ]


def test_statsd_with_tags_has_one_name_per_gauge(statsd: Callable[..., StatsdListener]) -> None:
    listener = statsd(statsd_influxdb_enabled="True")
    tell_all()
    assert listener.lines(4) == [
        f"airflow.chronon.partition_lag_seconds,dag_id={DAG_ID},team=shop:1|g",
        f"airflow.chronon.partitions_late,dag_id={DAG_ID},team=shop:3|g",
        f"airflow.chronon.partitions_missing,dag_id={DAG_ID},team=shop:2|g",
        f"airflow.chronon.wait_seconds,dag_id={DAG_ID},team=shop:4|g",
    ]


@pytest.mark.parametrize("tags", ["True", "False"])
@pytest.mark.parametrize(
    ("dag_id", "team"),
    [
        pytest.param("d" * 250, "t" * 250, id="long"),
        pytest.param(
            "feature--join.a__1", "check out, and=more: ü\n", id="characters that Airflow lets into no metric"
        ),
        pytest.param(DAG_ID, "", id="no team"),
    ],
)
def test_no_name_is_lost(statsd: Callable[..., StatsdListener], tags: str, dag_id: str, team: str) -> None:
    listener = statsd(statsd_influxdb_enabled=tags)
    tell_all(dag_id=dag_id, team=team)
    assert len(set(listener.lines(4))) == 4


def test_long_ids_that_begin_alike_stay_apart(statsd: Callable[..., StatsdListener]) -> None:
    listener = statsd(statsd_influxdb_enabled="True")
    for end in "ab":
        tell(Gauge.LATE, 1, dag_id="d" * 200 + end, team="shop")
    assert len(set(listener.lines(2))) == 2


class OtelListener(HTTPServer):
    """What an OpenTelemetry collector hears over HTTP."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler) -> None:
                self.bodies.append(handler.rfile.read(int(handler.headers["content-length"])))
                handler.send_response(200)
                handler.end_headers()

            def log_message(handler, *arguments: object) -> None: ...

        super().__init__(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def points(self) -> set[tuple[str, float, str, str]]:
        """Name, value, DAG and team of what was told last."""
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

        found = ExportMetricsServiceRequest.FromString(self.bodies[-1])
        metrics = [m for r in found.resource_metrics for s in r.scope_metrics for m in s.metrics]
        return {
            (metric.name, point.as_double or point.as_int, *(tags[name] for name in ("dag_id", "team")))
            for metric in metrics
            for point in metric.gauge.data_points
            for tags in [{each.key: each.value.string_value for each in point.attributes}]
        }


def test_opentelemetry_gets_them_with_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk._shared.observability.metrics.otel_logger import flush_otel_metrics
    from opentelemetry import metrics

    listener = OtelListener()
    use(monkeypatch, otel_on="True", otel_host="127.0.0.1", otel_port=str(listener.server_port))
    tell_all()
    metrics.get_meter_provider().shutdown()  # type: ignore[attr-defined]
    atexit.unregister(flush_otel_metrics)  # there is no listener any more when this process ends
    listener.shutdown()
    listener.server_close()
    assert listener.points() == {
        ("airflow.chronon.partition_lag_seconds", 1, DAG_ID, "shop"),
        ("airflow.chronon.partitions_missing", 2, DAG_ID, "shop"),
        ("airflow.chronon.partitions_late", 3, DAG_ID, "shop"),
        ("airflow.chronon.wait_seconds", 4, DAG_ID, "shop"),
    }

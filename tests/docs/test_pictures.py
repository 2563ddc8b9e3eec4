"""The pictures of time against the code: grids, what a run writes, the slice, and what catch-up makes up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from airflow_chronon.cli.main import main
from airflow_chronon.core.calendar.instants import DAY, HOUR, Instant
from airflow_chronon.core.partitions.grid import PartitionGrid
from tests.support.both_schedules import hourly_conf
from tests.support.checkout import ROOT
from tests.support.schedules import at, schedule_of

_PICTURE = re.compile(r"^```mermaid\n.*?^gantt\n(.*?)^```$", re.S | re.M)
_BAR = re.compile(r"^  (?P<text>.+?) :(?:(?P<look>active|done|milestone), )?(?P<start>[\d: -]+), (?P<end>[\d: -]+|0m)$")
GRIDS, WRITTEN, SLICE, CATCH_UP = _PICTURE.findall((ROOT / "docs" / "concepts.md").read_text())


@dataclass(frozen=True)
class Bar:
    section: str
    text: str
    look: str | None
    start: Instant
    end: Instant | None  #: None: a moment


def _bars(picture: str) -> Iterator[Bar]:
    section = ""
    for line in picture.splitlines():
        if line.startswith("  section "):
            section = line.removeprefix("  section ")
        elif match := _BAR.match(line):
            end = None if match["end"] == "0m" else at(match["end"])
            yield Bar(section, match["text"], match["look"], at(match["start"]), end)


@pytest.mark.parametrize("bar", list(_bars(GRIDS)), ids=str)
def test_a_bar_is_a_partition_of_its_grid(bar: Bar) -> None:  # C3, C7
    interval, _, offset = bar.section.replace("h", "").partition("@")
    grid = PartitionGrid(int(interval) * HOUR, int(offset or 0) * HOUR)
    assert (bar.start, bar.end) == (grid.floor(bar.start), bar.start + grid.interval)
    assert f"2026-06-01-{bar.text}" == _label(bar.start)


@pytest.mark.parametrize(("reader", "read"), [((3, 1), (1, 0)), ((6, 4), (1, 0)), ((6, 4), (3, 1))])
def test_the_grids_of_the_picture_line_up(reader: tuple[int, int], read: tuple[int, int]) -> None:  # C13
    consumer, producer = (PartitionGrid(interval * HOUR, offset * HOUR) for interval, offset in (reader, read))
    assert consumer.lines_up_with(producer)


def test_the_run_of_the_picture_writes_what_has_closed() -> None:  # C8
    bars = {bar.text.partition(",")[0]: bar for bar in _bars(WRITTEN)}
    run = schedule_of("15 1-22/3 * * *", 3 * HOUR, HOUR).last_run(bars["fires"].start)
    assert run is not None
    assert (run.fire, run.end) == (bars["fires"].start, bars["01-00"].end)
    assert bars["04-00"].end > run.fire


def test_the_slice_and_the_lookback_are_those_of_the_sample(capsys: pytest.CaptureFixture[str]) -> None:  # C16, C17
    conf = "growth.visits.trailing_week__1"
    asked = ["explain", conf, "--root", str(ROOT / "dags/chronon"), "--from", "2026-06-08", "--to", "2026-06-09"]
    assert main([*asked, "--format", "json"]) == 0
    ((run,),) = (each["runs"] for each in json.loads(capsys.readouterr().out).values())
    ((wait,),) = (mode["waits"] for mode in run["modes"].values())
    bars = {bar.text: bar for bar in _bars(SLICE)}
    assert [at(each) for each in wait["labels"]] == [bars["slice, waited for"].start]
    lookback = bars["lookback, checked"]
    assert (lookback.start, lookback.end) == (at(wait["lookback"]["from"]), at(wait["lookback"]["to"]) + DAY)
    assert bars["partition 06-07"].start == at(run["partition_key"])


@pytest.mark.parametrize(
    ("section", "settings"),
    [
        ("catchup: false", {"enabled": False}),
        ("catchup: true", {"enabled": True}),
        ("max_catchup_runs: 2", {"enabled": True, "max_runs": 2}),
        ("skip_to_date: 06-00", {"enabled": True, "skip_to": "2026-06-01T06:00:00Z"}),
    ],
)
def test_the_bright_bars_are_made_up_after_the_outage(section: str, settings: dict[str, object]) -> None:  # H8 to H11
    bars = [bar for bar in _bars(CATCH_UP) if bar.section == section]
    conf = hourly_conf(start="2026-01-01T00:00:00Z", **settings)
    runs = conf.missed(at("2026-06-01T03:00:00Z"), at("2026-06-01T09:30:00Z"))
    assert [run.end for run in runs] == [bar.end for bar in bars if bar.look == "active"]
    assert [f"2026-06-01-{bar.text}" for bar in bars] == [_label(bar.start) for bar in bars]


@pytest.mark.parametrize("picture", [GRIDS, WRITTEN, SLICE, CATCH_UP])
def test_every_bar_is_read(picture: str) -> None:
    lines = [line for line in picture.splitlines() if " :" in line]
    assert len(lines) == len(list(_bars(picture))) > 0


def _label(start: Instant) -> str:
    return schedule_of("0 * * * *", HOUR).label(start)

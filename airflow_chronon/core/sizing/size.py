"""From a load to the size of an Airflow: how many of what, which settings, and why."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from airflow_chronon.core.sizing.figures import FIGURES, Figures
from airflow_chronon.core.sizing.load import Load
from airflow_chronon.core.sizing.scheduler import Scheduler, Simulated, simulate

#: A parse shall take no more than this of a core while nothing changes.
IDLE_SHARE = 0.01
SOON = 10.0  #: seconds after its wait's end within which the work of a run shall begin
TRIGGERS = 1000  #: that one triggerer holds, Airflow's default
DAGS_PER_FILE = 1000  #: a parse has 30 seconds by the clock, and DAGs count as gone 50 seconds after a parse that stores them more slowly
ENOUGH_RUNS_PER_LOOP = 100  #: where runs that wait are passed over
FEW_WAITING = 100  #: so many cost a tenth of a core or less to look at each second
TASK_SECONDS = 2.0  #: how long a task holds its slot beside its work
LANDED_SECONDS = 3.0  #: of the check that ends each run
LONGEST_INTERVAL = 86_400


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One thing to set or to start, and why so."""

    name: str  #: as in ``[section] option``, or what there is to be so many of
    value: int | str
    why: str


@dataclass(frozen=True, kw_only=True)
class Size:
    """An Airflow that is large enough."""

    load: Load
    settings: tuple[Setting, ...]
    scheduler: Simulated  #: with these settings
    without: Simulated  #: the same, looking at runs that wait as Airflow does by itself
    parse_seconds: float  #: of a processor, each time that the tree is parsed


def size_of(load: Load, *, work_seconds: float, ends_a_minute: float | None = None, figures: Figures = FIGURES) -> Size:
    """The size for a load whose work tasks take ``work_seconds`` on average."""
    ends = max(1.0, load.runs_in_busiest_hour / 60) if ends_a_minute is None else ends_a_minute
    passes = load.waiting > FEW_WAITING
    plain_limit = max(ENOUGH_RUNS_PER_LOOP, ceil(1.2 * load.waiting))
    limit = ENOUGH_RUNS_PER_LOOP if passes else plain_limit
    chosen = simulate(
        Scheduler(runs_per_loop=limit, passes_over=passes), waiting=load.waiting, ends_a_minute=ends, figures=figures
    )
    plain = Scheduler(runs_per_loop=plain_limit, passes_over=False)
    without = simulate(plain, waiting=load.waiting, ends_a_minute=ends, figures=figures)
    parse = figures.parse(load.dags)
    return Size(
        load=load,
        settings=(
            *_scheduler(load, passes=passes, limit=limit),
            *_triggerers(load),
            *_workers(load, work_seconds),
            *_parsing(load, parse),
        ),
        scheduler=chosen,
        without=without,
        parse_seconds=parse,
    )


def _scheduler(load: Load, *, passes: bool, limit: int) -> list[Setting]:
    many = f"{load.waiting} runs wait at once"
    if passes:
        over = "each loop would look at them in turn, and at replays after them"
        enough = "those that wait are passed over, so few are left"
    else:
        over, enough = "that few cost the scheduler little", "more than wait, or replays starve"
    return [
        Setting(name="[chronon] pass_over_waiting_runs", value=str(passes), why=f"{many}: {over}"),
        Setting(name="[scheduler] max_dagruns_per_loop_to_schedule", value=limit, why=enough),
    ]


def _triggerers(load: Load) -> list[Setting]:
    needed = max(1, ceil(load.waits / (0.8 * TRIGGERS)))
    why = f"{load.waits} waits when one run of each conf waits, four fifths of {TRIGGERS} each"
    return [
        Setting(name="triggerers", value=max(2, needed), why=f"{why}; two so that one may fail"),
        Setting(name="[triggerer] capacity", value=TRIGGERS, why="for each of them"),
    ]


def _workers(load: Load, work_seconds: float) -> list[Setting]:
    busy = load.work_in_busiest_hour * (work_seconds + TASK_SECONDS) + load.runs_in_busiest_hour * LANDED_SECONDS
    at_once = ceil(1.5 * busy / 3600) + 2
    why = f"{load.work_in_busiest_hour} tasks of {work_seconds:g} s in the busiest hour, half as much again, and two"
    return [Setting(name="[core] parallelism", value=max(8, at_once), why=why)]


def _parsing(load: Load, parse: float) -> list[Setting]:
    files = max(1, ceil(load.dags / DAGS_PER_FILE))
    interval = min(LONGEST_INTERVAL, max(60, ceil(parse / IDLE_SHARE / 60) * 60))
    slowest = parse / files
    return [
        Setting(
            name="loader files",
            value=files,
            why=f"at most {DAGS_PER_FILE} DAGs in each, by team or match of build_dags",
        ),
        Setting(
            name="[dag_processor] min_file_process_interval",
            value=interval,
            why=f"a parse takes {parse:.0f} s of a processor; what changes is parsed when the reconciler asks",
        ),
        Setting(
            name="[core] dagbag_import_timeout",
            value=max(60, 60 * ceil(slowest / 30)),
            why="by the clock, so a busy machine needs more",
        ),
        Setting(
            name="[dag_processor] dag_file_processor_timeout",
            value=max(120, 120 * ceil(slowest / 30)),
            why="twice that",
        ),
        Setting(
            name="[dag_processor] stale_dag_threshold",
            value=max(120, 120 * ceil(slowest / 30)),
            why="DAGs whose storing takes longer than this count as gone for a while, and nothing of them runs",
        ),
    ]

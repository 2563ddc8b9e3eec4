"""From a tree of confs to plans: what is deployed, what is rejected and why."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from airflow_chronon.core.bounds import MAX_OWN_SETTINGS, path_text, unstorable
from airflow_chronon.core.calendar.instants import Instant, TimeWindow, duration_text, iso
from airflow_chronon.core.confs.conf import (
    Conf,
    ConfKey,
    output_table,
    schedule_faults,
    schedules_of,
    unread_schedules,
)
from airflow_chronon.core.confs.cycles import find_cycles
from airflow_chronon.core.confs.documents import ConfType
from airflow_chronon.core.confs.inputs import left_without_inputs
from airflow_chronon.core.confs.max_lag import with_max_lag
from airflow_chronon.core.confs.naming import dag_id, tags
from airflow_chronon.core.confs.plan import OtherEnvironment, Plan, RejectedConf, faults_of
from airflow_chronon.core.confs.references import Resolver
from airflow_chronon.core.confs.rights import own_word_faults
from airflow_chronon.core.confs.shared_tables import shared_table_faults, shared_table_warnings
from airflow_chronon.core.confs.sources import modes_with_dependencies
from airflow_chronon.core.confs.tree import ConfTree
from airflow_chronon.core.confs.writers import WriterIndex, Writers
from airflow_chronon.core.partitions.grid import PartitionGrid
from airflow_chronon.core.partitions.labels import PartitionSpec
from airflow_chronon.core.partitions.parse import read_bound
from airflow_chronon.core.schedules.base import CatchUp
from airflow_chronon.core.schedules.chronon import CronSchedule
from airflow_chronon.core.schedules.modes import Mode
from airflow_chronon.core.schedules.partitioned import ModeSchedule, PartitionedSchedule, Run
from airflow_chronon.core.settings.model import ConfSettings, Covers, Settings, Unscheduled
from airflow_chronon.core.settings.yaml import read_conf_settings
from airflow_chronon.core.waits.dependencies import TableDependency, Wait, merged
from airflow_chronon.errors import ChrononError, Fault, Rejected


@dataclass(frozen=True, kw_only=True)
class ConfPlan(Plan):
    """A conf that is good to run: its schedule, what each mode reads, and the settings that hold for it."""

    conf: Conf
    schedule: PartitionedSchedule
    dependencies: Mapping[Mode, tuple[TableDependency, ...]]  #: for every mode that a replay may run
    writers: Writers = field(default_factory=dict)  #: of the tables that it reads and this tree writes (C30)

    @property
    def key(self) -> str:
        return str(self.conf.key)

    @property
    def family(self) -> str:
        return f"{self.conf.key.conf_type.value}/{self.conf.name_without_version}"

    @property
    def version(self) -> str | None:
        return self.conf.version

    @property
    def file(self) -> str:
        return self.conf.file

    @property
    def team(self) -> str:
        return self.conf.meta.team

    @property
    def document(self) -> Mapping[str, Any]:
        return self.conf.raw

    @property
    def summary(self) -> str:
        return ", ".join(mode.value for mode in self.modes) or "unscheduled"

    @property
    def spec(self) -> PartitionSpec:
        return self.schedule.spec

    @property
    def table(self) -> str:
        return self.conf.table

    @property
    def tables(self) -> tuple[str, ...]:
        """Every table that a run fills; a join's ``__derived`` is filled with it."""
        modes = self.schedule.all_modes
        written = [table for mode in modes if (table := output_table(self.conf, mode)) is not None]
        return (*written, *(f"{table}__derived" for table in written if table == self.table))

    @property
    def is_left_out(self) -> bool:
        return not self.modes and self.settings.unscheduled is Unscheduled.OMIT

    @property
    def may_name_backends(self) -> bool:
        return "airflow" in (self.conf.meta.custom_json or "")

    @property
    def may_lag(self) -> bool:
        """Whether a run may go on without the newest partitions of a table that it reads (``max_lag``)."""
        return any(each.max_lag is not None for found in self.dependencies.values() for each in found)

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The scheduled modes."""
        return tuple(self.schedule.modes)

    def end_of_runs_fired_by(self, instant: Instant) -> Instant | None:
        """A run follows the end of the one before, not its fire."""
        last = self.schedule.last_run(instant)
        return None if last is None else last.end

    def waits(self, run: Run) -> dict[Mode, tuple[Wait, ...]]:
        """What each mode of a run waits for."""
        return {mode: self.mode_waits(mode, of.window) for mode, of in run.modes.items()}

    def mode_waits(self, mode: Mode, window: TimeWindow) -> tuple[Wait, ...]:
        """What one mode over one window waits for, one wait per table."""
        found = (d.waits(window.start, window.end, grid=self.spec.grid) for d in self.dependencies[mode])
        return merged(wait for waits in found for wait in waits)

    def replay_waits(self, start: Instant) -> Iterable[Wait]:
        window = self.schedule.partition(start)
        for mode in self.schedule.replay(window).modes:
            yield from self.mode_waits(mode, window)


ConfVerdict: TypeAlias = ConfPlan | RejectedConf | OtherEnvironment


@dataclass
class _Draft:
    """What is known of one conf while its faults are collected."""

    conf: Conf
    resolver: Resolver
    modes: Mapping[Mode, CronSchedule]
    dependencies: Mapping[Mode, tuple[TableDependency, ...]]
    faults: list[Fault]


def resolve(
    tree: ConfTree,
    settings: Settings,
    *,
    branch: str = "main",
    wanted: str | None = None,
    elsewhere: Container[ConfKey] = frozenset(),
) -> dict[str, ConfVerdict]:
    """Judge every conf of a tree; keys are ``type/name``. One bad conf never touches another's verdict, unless it reads it.

    With ``wanted``, a DAG id, only the confs of that id are judged, and cycles through other confs are not looked
    for: a task starts, and its DAG was good when it was parsed. ``elsewhere`` are the confs that the default branch runs.
    """
    confs = tree.confs.items()
    judged = {key: conf for key, conf in confs if wanted is None or _dag_id(conf, settings, branch) == wanted}
    drafts = {key: _guarded_draft(conf, tree) for key, conf in judged.items()}
    reads = {
        key: tuple(dict.fromkeys(edge.producer for edge in draft.resolver.edges if not edge.looks_back))
        for key, draft in drafts.items()
    }
    for key, cycle in find_cycles(reads).items():
        path = " reads ".join(str(step) for step in (*cycle, key))
        remedy = "let one of them read earlier partitions (a lag), or cut the cycle"
        drafts[key].faults.append(Fault("C15", "", f"a cycle that no partition can start: {path}", remedy))
    verdicts: dict[str, ConfVerdict] = {}
    for key, draft in drafts.items():
        conf = draft.conf
        if not conf.runs_in(tree.environment):
            verdicts[str(key)] = OtherEnvironment(conf)
            continue
        try:
            verdicts[str(key)] = _plan(draft, tree, settings, branch)
        except Exception as error:
            verdicts[str(key)] = RejectedConf(str(key), conf.file, faults_of(error))
    verdicts = _without_shared_ids(verdicts)
    return verdicts if wanted is not None else _with_writers(verdicts, tree, settings, branch, elsewhere)


def _with_writers(
    verdicts: dict[str, ConfVerdict], tree: ConfTree, settings: Settings, branch: str, elsewhere: Container[ConfKey]
) -> dict[str, ConfVerdict]:
    """The verdicts, each good one with who writes the tables that it reads."""
    plans = {key: verdict.plan for key, verdict in verdicts.items() if verdict.plan is not None}
    index = WriterIndex(
        tree,
        {plan.conf.key: plan.schedule for plan in plans.values()},
        {plan.conf.key: plan.producers for plan in plans.values()},
        dag_id_of=lambda conf: _dag_id(conf, settings, settings.default_branch if conf.key in elsewhere else branch),
    )
    for key, plan in plans.items():
        tables = (dependency.table for found in plan.dependencies.values() for dependency in found)
        writers = index.of_tables(tables, reader=plan.conf.key)
        if writers:
            found = replace(plan, writers=writers)
            try:
                verdicts[key] = replace(found, warnings=(*found.warnings, *left_without_inputs(found)))
            except Exception as error:
                verdicts[key] = RejectedConf(key, plan.file, faults_of(error))
    return verdicts


def _guarded_draft(conf: Conf, tree: ConfTree) -> _Draft:
    try:
        return _draft(conf, tree)
    except Exception as error:
        return _Draft(conf, Resolver(conf, tree), {}, {}, [*faults_of(error)])


def _draft(conf: Conf, tree: ConfTree) -> _Draft:
    resolver = Resolver(conf, tree)
    draft = _Draft(conf, resolver, {}, {}, [])
    try:
        grid = conf.spec.grid
    except ChrononError as error:
        draft.faults.append(error.fault)
        draft.faults += [fault for fault in schedule_faults(conf) if fault not in draft.faults]
        return draft
    try:
        draft.modes = schedules_of(conf)
    except Rejected as error:
        draft.faults += error.faults
    runnable = tuple(draft.modes) or (Mode.BACKFILL,)
    draft.dependencies = modes_with_dependencies(resolver, runnable)
    draft.faults += resolver.faults
    draft.faults += shared_table_faults(conf, tree)
    resolver.warnings += _empty_ranges(draft.dependencies, grid)
    if conf.key.conf_type is not ConfType.JOIN:
        for dependency in draft.dependencies.get(Mode.BACKFILL, ()):
            if dependency.spec and dependency.reach and dependency.reach % dependency.spec.grid.interval:
                uneven = f"the range does not begin on a partition of {dependency.spec.grid}"
                problem = f"{dependency.table}: {uneven}: every partition it touches is read"
                resolver.warnings.append(
                    Fault("C16", dependency.field, problem, f"use multiples of {grid} where it can be")
                )
    return draft


def _empty_ranges(dependencies: Mapping[Mode, Iterable[TableDependency]], grid: PartitionGrid) -> list[Fault]:
    """Dependencies whose ranges start after they end: nothing is waited for (C16)."""
    found: dict[Fault, None] = {}
    for each in (each for of in dependencies.values() for each in of):
        cut = each.cut
        if cut.start is not None and cut.end is not None and cut.start >= cut.end:
            what = f"its cut-offs leave nothing, since the last, {iso(cut.last or 0)}, is before the first, {iso(cut.start)}"
        elif each.reach is not None and each.reach <= -grid.interval:
            less = duration_text(-each.reach)
            what = f"its start offset is {less} less than its end offset, so a run of one partition needs nothing of it"
        else:
            continue
        remedy = "make the start offset at least the end offset, and the first cut-off no later than the last"
        found[Fault("C16", each.field, f"{each.table} is not waited for: {what}", remedy)] = None
    return list(found)


def _plan(draft: _Draft, tree: ConfTree, settings: Settings, branch: str) -> ConfPlan:
    conf, faults = draft.conf, draft.faults
    own = _own_settings(conf, faults)
    if own is not None:
        said = own_word_faults(own, may_set=settings.confs_may_set)
        faults += [fault.under("metaData.customJson.airflow") for fault in said]
    if faults and not draft.dependencies:
        raise Rejected(faults, conf=str(conf.key))  # the grid itself is bad: nothing else can be judged
    modes = tuple(draft.modes)
    conf_tags = tags(conf, grid=conf.spec.grid, modes=modes, branch=branch)
    effective = settings.for_conf(str(conf.key), conf_tags, own)
    catch_up = _catch_up(conf, effective, faults)
    dependencies, max_lag_warnings = with_max_lag(draft.dependencies, effective, faults)
    if faults:
        raise Rejected(faults, conf=str(conf.key))
    schedules = {}
    for mode, schedule in draft.modes.items():
        newest = mode is not Mode.BACKFILL or conf.writes_only_newest or effective.covers is Covers.NEWEST
        schedules[mode] = ModeSchedule(schedule, newest)
    enabled = schedules if effective.enabled else {}
    if effective.lookback is not None:
        dependencies = {
            mode: tuple(replace(dependency, policy=effective.lookback, is_strict=True) for dependency in found)
            for mode, found in dependencies.items()
        }
    return ConfPlan(
        conf=conf,
        dag_id=_dag_id(conf, settings, branch),
        tags=tags(conf, grid=conf.spec.grid, modes=tuple(enabled), branch=branch),
        schedule=PartitionedSchedule(conf.spec, enabled, catch_up, tuple(dependencies)),
        dependencies=dependencies,
        settings=effective,
        producers=tuple(dict.fromkeys(edge.producer for edge in draft.resolver.edges)),
        warnings=(
            *unread_schedules(conf),
            *draft.resolver.warnings,
            *max_lag_warnings,
            *shared_table_warnings(conf, tree),
        ),
    )


def _dag_id(conf: Conf, settings: Settings, branch: str) -> str:
    name, version = conf.name_without_version, conf.version
    return dag_id(conf.key, name=name, version=version, branch=branch, default_branch=settings.default_branch)


def _own_settings(conf: Conf, faults: list[Fault]) -> ConfSettings | None:
    """What the conf says of itself under ``customJson.airflow``."""
    try:
        custom: Any = json.loads(conf.meta.custom_json or "{}")
        raw = custom.get("airflow") if isinstance(custom, dict) else None
        if raw is None:
            return None
        bad = unstorable(raw)
        if bad is not None:
            raise Rejected([Fault("S1", path_text(bad.path), bad.problem, bad.remedy)])
        if len(json.dumps(raw)) > MAX_OWN_SETTINGS:
            problem = f"the settings have more than {MAX_OWN_SETTINGS // 1024} KB, and each wait carries some of them"
            raise Rejected([Fault("S1", "", problem, "write less, or set it in chronon.yaml")])
        return read_conf_settings(raw, conf=str(conf.key))
    except (ValueError, RecursionError) as error:
        if "airflow" in (conf.meta.custom_json or "") and conf.key.conf_type is not ConfType.STAGING_QUERY:
            problem = f"it is not JSON, so the settings in it are not known: {error}"
            faults.append(Fault("settings", "metaData.customJson", problem, "compile it again"))
        return None  # a staging query's reader says so; without settings nobody else reads it
    except Rejected as error:
        faults += [fault.under("metaData.customJson.airflow") for fault in error.faults]
        return None


def _catch_up(conf: Conf, settings: ConfSettings, faults: list[Fault]) -> CatchUp:
    def bound(name: str) -> Instant | None:
        text = getattr(settings, name)
        if text is None:
            return None
        try:
            return read_bound(text, conf.spec, field=name)
        except ChrononError as error:
            faults.append(replace(error.fault, rule="C29"))
            return None

    found = CatchUp(
        settings.catchup, settings.max_catchup_runs, bound("skip_to_date"), bound("start_date"), bound("end_date")
    )
    if found.enabled and settings.start_date is None:
        faults.append(Fault("C29", "catchup", "catch-up needs to know where the schedule begins", "set start_date"))
    if found.start is not None and found.end is not None and found.end <= found.start:
        problem = f"end_date {settings.end_date!r} leaves no partition after start_date {settings.start_date!r}"
        faults.append(Fault("C29", "end_date", problem, "set a later end_date"))
    return found


def _without_shared_ids(verdicts: dict[str, ConfVerdict]) -> dict[str, ConfVerdict]:
    """Reject every conf whose DAG id another conf of the tree has too: neither may win by chance (C26)."""
    holders: dict[str, list[str]] = defaultdict(list)
    for key, verdict in verdicts.items():
        if verdict.plan is not None:
            holders[verdict.plan.dag_id].append(key)
    for shared, keys in holders.items():
        for key in keys if len(keys) > 1 else ():
            others = " and ".join(other for other in keys if other != key)
            fault = Fault(
                "C26", "metaData.name", f"its DAG id {shared!r} is also that of {others}", "rename one of them"
            )
            verdicts[key] = RejectedConf(key, verdicts[key].file, (fault,))
    return verdicts

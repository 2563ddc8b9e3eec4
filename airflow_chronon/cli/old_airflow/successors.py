"""What takes the place of each thing that Chronon's Airflow folder did, and of each of its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_chronon.cli.old_airflow.constructors import Constant, OldAirflow, OldDags

_NOTHING = "nothing of this package: a job file with its own cron can start run.py --mode={mode} (docs/jobs.md), or keep the old DAG for it"

#: By mode and type of confs.
_MODES: Mapping[tuple[str, str], str] = {
    (
        "backfill",
        "group_bys",
    ): "a DAG per GroupBy with backfillStartDate, group_by.NAME, its task backfill; on its own offlineSchedule",
    (
        "upload",
        "group_bys",
    ): "a DAG per online GroupBy, group_by.NAME, its tasks upload and upload_to_kv; for those, runner.argv names what"
    " get_kv_store_upload_operator did",
    ("backfill", "joins"): "a DAG per Join, join.NAME, its task backfill; on its own offlineSchedule",
    ("metadata-upload", "joins"): "the task metadata_upload of the DAG of each online Join",
    (
        "backfill",
        "staging_queries",
    ): "a DAG per staging query, staging_query.NAME, its task backfill; on its own offlineSchedule",
}

#: By the name of a constant of ``constants.py``.
_CONSTANTS: Mapping[str, str] = {
    "CHRONON_PATH": "the conf root: the folder above the loader files that init writes, or [chronon] conf_root",
    "ZIPLINE_PATH": "the conf root: the folder above the loader files that init writes, or [chronon] conf_root",
    "TEST_TEAM_NAME": "an override with match: team:NAME and a runner of its own",
    "GROUP_BY_BATCH_CONCURRENCY": "a pool for all GroupBys: task_defaults.pool, in an override with match: group_by/*; one DAG is held by"
    " max_active_runs",
    "JOIN_CONCURRENCY": "a pool for all Joins: task_defaults.pool, in an override with match: join/*; one DAG is held by max_active_runs",
    "UPLOAD_SCHEDULE_KEY": "nothing: an uploadSchedule is not read, and uploads follow offlineSchedule",
    "DEFAULT_UPLOAD_SCHEDULE": "nothing: an uploadSchedule is not read, and uploads follow offlineSchedule",
    "time_parts": "nothing to set: the partition column is what the confs and teams.json say",
}

#: By the name of an argument of a DAG or of its tasks; what starts a sentence is a setting of ``chronon.yaml``.
_ARGUMENTS: Mapping[str, str] = {
    "schedule_interval": "the conf's own offlineSchedule; daily where it says nothing",
    "concurrency": "max_active_runs of each DAG, and a pool (task_defaults.pool) over several",
    "max_active_runs": "max_active_runs",
    "task_concurrency": "max_active_runs, and one writer of each partition at a time",
    "dagrun_timeout": "sensor.timeout for the waits, and the runner's own limit for the work",
    "catchup": "catchup",
    "start_date": "start_date",
    "retries": "retries",
    "retry_delay": "[core] default_task_retry_delay of Airflow",
    "queue": "task_defaults.queue",
    "email": "task_defaults.email",
    "owner": "owner; the team where it says nothing",
    "resources": "the runner: spark_conf, or arguments of an operator",
    "run_as_user": "the user of the worker, or of the runner's job",
    "hive_cli_conn_id": "catalog",
    "metastore_conn_id": "catalog",
    "presto_conn_id": "catalog",
    "depends_on_past": "one writer of each partition at a time",
    "email_on_failure": "task_defaults.on_failure_callback",
    "email_on_retry": "nothing",
}

#: What stood in the DAGs, by the name of its class, function or argument.
_PARTS: Mapping[str, str] = {
    "ChrononOperator": "the task of each mode; runner: {kind: command} starts run.py",
    "NamedHivePartitionSensor": "the tasks wait.TABLE, which hold no worker; catalog says where partitions are seen",
    "SensorWithEndDate": "the same: a wait never goes past the end of what a source reads",
    "create_skip_operator": "catchup: false, which runs the newest partition alone; a run waits for another that writes the same",
    "get_kv_store_upload_operator": "the task upload_to_kv; runner.argv names the command",
    "on_failure_callback": "task_defaults.on_failure_callback",
    "on_retry_callback": "metrics of the reconciler (docs/metrics.md)",
    "on_success_callback": "metrics of the reconciler (docs/metrics.md)",
}

_SETTINGS = ("retries", "max_active_runs", "catchup", "start_date")


@dataclass(frozen=True)
class Row:
    """One thing of an old folder and what takes its place."""

    what: str
    value: str
    place: str  #: the file and line
    successor: str


def dag_rows(dags: Iterable[OldDags]) -> list[Row]:
    """The DAGs, in the order of the files."""
    return [
        Row(f"{each.conf_type} {each.mode}", each.arguments.get("schedule_interval", ""), each.place, _of(each))
        for each in dags
    ]


def constant_rows(constants: Iterable[Constant]) -> list[Row]:
    """The constants that Chronon's own folder has; others are not for DAGs."""
    found: dict[tuple[str, str], Row] = {}
    for each in constants:
        if each.name in _CONSTANTS:
            found.setdefault((each.name, each.value), Row(each.name, each.value, each.place, _CONSTANTS[each.name]))
    return list(found.values())


def part_rows(found: OldAirflow) -> list[Row]:
    """What stood in the DAGs beside the jobs."""
    return [Row(name, "", found.names[name], _PARTS[name]) for name in _PARTS if name in found.names]


def argument_rows(dags: Iterable[OldDags]) -> list[Row]:
    """The arguments of the DAGs, each value once."""
    found: dict[tuple[str, str], Row] = {}
    for each in dags:
        for name, value in each.arguments.items():
            successor = _ARGUMENTS.get(name, "nothing that is known here: look whether it is needed")
            found.setdefault((name, value), Row(name, value, each.place, successor))
    return sorted(found.values(), key=lambda row: (row.what, row.place))


def settings_of(found: OldAirflow) -> dict[str, object]:
    """What ``chronon.yaml`` would say of the same: only where every DAG of the batch modes agrees."""
    batch = [each.arguments for each in found.dags if each.mode != "streaming" and each.arguments]
    settings: dict[str, object] = {}
    for name in _SETTINGS:
        values = {arguments[name] for arguments in batch if name in arguments}
        if len(values) == 1 and (value := _value(name, values.pop())) is not None:
            settings[name] = value
    return settings


def _of(each: OldDags) -> str:
    known = _MODES.get((each.mode, each.conf_type))
    return _NOTHING.format(mode=each.mode or "MODE") if known is None else known


def _value(name: str, text: str) -> object | None:
    if name == "catchup":
        return {"True": True, "False": False}.get(text)
    if name == "start_date":
        return text if len(text) == 10 and text.replace("-", "").isdecimal() else None
    return int(text) if text.isdecimal() and len(text) < 6 else None

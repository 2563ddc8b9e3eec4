"""The arguments of an operator that does the work of a run: the settings' template with what this run stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_chronon.core.calendar.instants import TimeWindow, iso
from airflow_chronon.core.confs.execution import spark_conf_of, variables_of
from airflow_chronon.core.settings.argument_templates import Value, Values, filled_arguments, names_in
from airflow_chronon.core.settings.runners import JOB_TOKEN, RUNNERS, OperatorRunnerSettings
from airflow_chronon.core.settings.variables import Secrets, filled, filled_template, unfilled_template
from airflow_chronon.engine.argv import JobStart, driver_options, placeholders_of
from airflow_chronon.engine.protocol import JobRequest, NothingToWrite

#: What Chronon's Driver calls each mode of each type; it calls others as its command line does. Checked against zipline-ai 1.28.
_SUBCOMMANDS: Mapping[tuple[str, str], str] = {
    ("group_by", "backfill"): "group-by-backfill",
    ("group_by", "upload"): "group-by-upload",
    ("group_by", "upload_to_kv"): "group-by-upload-bulk-load",
    ("join", "backfill"): "join",
    ("join", "metadata_upload"): "metadata-upload",
    ("staging_query", "backfill"): "staging-query-backfill",
}
_FOLDERS = {"group_by": "group_bys", "join": "joins", "staging_query": "staging_queries"}


@dataclass(frozen=True)
class GivenOperator:
    """An operator and its arguments for one run."""

    class_path: str
    arguments: Mapping[str, Any] = field(repr=False)
    shown: Mapping[str, Any]  #: the arguments with ``${NAME}`` as it is written (S4)
    pass_env: tuple[str, ...]
    secrets: Secrets


def given_operator(
    written: Mapping[str, Any], values: Values, *, environ: Mapping[str, str], conf: str
) -> GivenOperator:
    """The operator that a section ``runner`` of the kind ``operator`` describes, for a run of ``conf``.

    Raises :class:`airflow_chronon.errors.Rejected` for settings that are wrong once filled in, and
    :class:`NothingToWrite` where the arguments need a partition and the run has none (H7).
    """
    found = RUNNERS.read(written, environ)
    assert isinstance(found, OperatorRunnerSettings)
    template, own = written.get("arguments") or {}, written.get("env") or {}
    if not names_in(unfilled_template(template)) <= values.keys():
        raise NothingToWrite(conf=conf)
    env = values["env"]
    assert isinstance(env, Mapping)
    unfilled_env = {
        name: own[name] if value == filled(own.get(name), environ) else value for name, value in env.items()
    }
    return GivenOperator(
        found.class_path,
        filled_arguments(filled_template(template, environ), values),
        filled_arguments(unfilled_template(template), {**values, "env": unfilled_env}),
        tuple(found.pass_env or ()),
        Secrets.of(written, environ=environ),
    )


def values_of(job: JobRequest, *, conf_file: str) -> dict[str, Value]:
    """What the placeholders stand for in a mode of a conf: its own variables and settings for Spark among them.

    Those of a partition are left out in a run without a window (H7).
    """
    named = placeholders_of(job)
    mode = named["mode"]
    env = {**variables_of(job.document, mode), **job.environment}
    values: dict[str, Value] = {
        **named,
        **_of_window(job.window, job.partitions),
        JOB_TOKEN: job.token,
        "conf_file": conf_file,
        "conf_file_name": conf_file.rpartition("/")[2],
        "env": env,
        "spark_conf": spark_conf_of(job.document, mode),
    }
    if job.window is not None or job.mode == "metadata_upload":
        values["driver_args"] = tuple(_driver_args(job, named, env))
        values["zipline_args"] = tuple(driver_options(job))
    return values


def values_of_job(
    start: JobStart, window: TimeWindow | None, *, conf_file: str, environment: Mapping[str, str]
) -> dict[str, Value]:
    """The same for a run of a job: there is no conf that Chronon's driver could take."""
    date = start.logical_date
    return {
        **start.placeholders,
        **_of_window(window, () if date is None else (date,)),
        "conf_file": conf_file,
        "conf_file_name": conf_file.rpartition("/")[2],
        "env": environment,
        "spark_conf": {},
    }


def _driver_args(job: JobRequest, named: Mapping[str, str], env: Mapping[str, str]) -> Iterator[str]:
    """What Chronon's Driver takes in a mode, beside the path of the conf."""
    yield _SUBCOMMANDS.get((job.conf_type, job.mode), named["mode"])
    yield f"--conf-type={_FOLDERS.get(job.conf_type, job.conf_type)}"
    if job.mode != "metadata_upload":
        yield f"--end-date={named['end_ds']}"
    if job.mode == "backfill":
        yield f"--start-partition={named['start_ds']}"
    if job.mode in ("upload_to_kv", "metadata_upload"):
        for option, variable in (("--online-jar", "CHRONON_ONLINE_JAR"), ("--online-class", "CHRONON_ONLINE_CLASS")):
            if variable in env:
                yield f"{option}={env[variable]}"


def _of_window(window: TimeWindow | None, partitions: tuple[str, ...]) -> dict[str, str]:
    if window is None:
        return {}
    newest = {"partition_key": partitions[-1], "partitions": ",".join(partitions)} if partitions else {}
    return {"start": iso(window.start), "end": iso(window.end), **newest}

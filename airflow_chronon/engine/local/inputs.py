"""The tables that a job reads, with the grids, formats, lags and cut-offs that hold for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TypeAlias

from airflow_chronon.core.confs.conf import Conf, ConfKey
from airflow_chronon.core.confs.documents import ConfType, read_document
from airflow_chronon.core.confs.references import Resolver
from airflow_chronon.core.confs.sources import read_dependencies
from airflow_chronon.core.confs.tree import ConfTree
from airflow_chronon.core.waits.dependencies import TableDependency
from airflow_chronon.engine.local.computation import refused
from airflow_chronon.engine.protocol import JobRequest
from airflow_chronon.errors import ChrononError, JobRefused, Rejected

Inputs: TypeAlias = Mapping[str, tuple[TableDependency, ...]]


def inputs_of(job: JobRequest) -> Inputs:
    """The job's tables by the field that names them.

    Those that the job was given know every conf of the tree (C15); without them the conf alone says how its tables are
    partitioned. Raises :class:`airflow_chronon.errors.JobRefused` for a conf that breaks a rule.
    """
    found: dict[str, tuple[TableDependency, ...]] = defaultdict(tuple)
    for dependency in job.inputs or _alone(job):
        found[dependency.field] += (dependency,)
    return found


def _alone(job: JobRequest) -> tuple[TableDependency, ...]:
    kind = ConfType(job.conf_type)
    try:
        conf = Conf(ConfKey(kind, job.name), read_document(kind, job.document), job.document, job.path)
        resolver = Resolver(conf, ConfTree([conf]))
        dependencies = read_dependencies(resolver)
    except Rejected as error:
        raise JobRefused(error.faults[0], conf=job.conf) from None
    except ChrononError as error:
        raise JobRefused(error.fault, conf=job.conf) from None
    if resolver.faults:
        fault = resolver.faults[0]
        raise refused(job, fault.field, fault.message, fault.remedy, rule=fault.rule)
    return dependencies

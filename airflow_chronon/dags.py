"""What loader files in the dags folder call: the good confs as DAGs, and one exception that lists the bad ones.

::

    # dags/chronon.py                                # dags/chronon_import_errors.py
    from airflow_chronon.dags import build_dags      from airflow_chronon.dags import raise_import_errors

    globals().update(build_dags(near=__file__))      raise_import_errors(near=__file__)
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_chronon.conf_root import ConfRoot, read_conf_root
from airflow_chronon.core.conf import ConfKey
from airflow_chronon.core.page import conf_page
from airflow_chronon.core.resolve import ConfPlan, RejectedConf, Verdict
from airflow_chronon.core.settings import Unscheduled
from airflow_chronon.errors import ChrononError, Fault, Rejected

if TYPE_CHECKING:
    from airflow.sdk import DAG


class ImportErrors(Exception):
    """Every bad conf of a deployment at once; the text is what Airflow shows."""


def build_dags(
    *, near: str | None = None, conf_root: str | Path | None = None, team: str | None = None, match: str | None = None
) -> dict[str, DAG]:
    """One DAG per good conf version, by DAG id. Bad confs are left to :func:`raise_import_errors`.

    ``near`` is the loader's ``__file__``; ``conf_root`` overrides where the confs are. ``team`` and ``match`` (a
    ``type/name`` glob) split a large deployment over several loader files. At task start only the asked DAG is built.
    """
    wanted = _asked_dag()
    root = _read(near, conf_root)
    verdicts = root.judge(wanted=wanted)
    return {
        dag.dag_id: dag
        # a task needs no page; the page changes nothing that runs
        for dag in _built(root, verdicts, wanted=wanted, team=team, match=match, pages=wanted is None)
        if not isinstance(dag, RejectedConf)
    }


def raise_import_errors(*, near: str | None = None, conf_root: str | Path | None = None) -> None:
    """Raise one :class:`ImportErrors` that lists every bad conf and what is wrong with the conf root; else do nothing."""
    if _asked_dag() is not None:
        return  # a task is starting: nobody reads import errors here
    root = _read(near, conf_root)
    verdicts = root.judge()
    rejected = [verdict for verdict in verdicts.values() if isinstance(verdict, RejectedConf)]
    rejected += [found for found in _built(root, verdicts, pages=False) if isinstance(found, RejectedConf)]
    lines = [str(problem) for problem in root.problems]
    lines += [f"{each.key} ({each.file}): {fault}" for each in rejected for fault in each.faults]
    if lines:
        raise ImportErrors("\n".join(lines))


def _built(
    root: ConfRoot,
    verdicts: Mapping[str, Verdict],
    *,
    wanted: str | None = None,
    team: str | None = None,
    match: str | None = None,
    pages: bool = True,
) -> Iterator[DAG | RejectedConf]:
    """Each good conf's DAG, or why it could not be built; each under its own guard."""
    from airflow_chronon.airflow.dag import build_dag

    plans = [verdict for verdict in verdicts.values() if isinstance(verdict, ConfPlan)]
    dag_ids = {plan.conf.key: plan.dag_id for plan in plans}
    consumers = _consumers(plans)
    for plan in plans:
        key = str(plan.conf.key)
        if wanted is not None and plan.dag_id != wanted:
            continue
        if (team is not None and plan.conf.meta.team != team) or (match is not None and not fnmatchcase(key, match)):
            continue
        if not plan.runs.modes and plan.settings.unscheduled is Unscheduled.OMIT:
            continue
        try:
            page = conf_page(plan, dag_ids=dag_ids, consumers=consumers[plan.conf.key]) if pages else ""
            yield build_dag(
                plan, conf_path=str(root.path / plan.conf.file), doc=page, namespace_prefix=root.namespace_prefix
            )
        except Rejected as error:
            yield RejectedConf(key, plan.conf.file, error.faults)
        except ChrononError as error:
            yield RejectedConf(key, plan.conf.file, (error.fault,))
        except Exception as error:  # whatever Airflow has against one DAG must not cost the others
            fault = Fault(
                "input", "", f"its DAG cannot be built: {type(error).__name__}: {error}", "report this with the conf"
            )
            yield RejectedConf(key, plan.conf.file, (fault,))


def _consumers(plans: list[ConfPlan]) -> Mapping[ConfKey, set[ConfKey]]:
    found: dict[ConfKey, set[ConfKey]] = defaultdict(set)
    for plan in plans:
        for producer in plan.producers:
            found[producer].add(plan.conf.key)
    return found


def _read(near: str | None, conf_root: str | Path | None) -> ConfRoot:
    from airflow_chronon.airflow.deployment import find_deployment

    found = find_deployment(near=near, conf_root=conf_root)
    return read_conf_root(found.conf_root, environ=os.environ, branch=found.branch)


def _asked_dag() -> str | None:
    """The DAG that a starting task asks for; None when the whole file is being parsed."""
    from airflow.sdk import get_parsing_context

    return get_parsing_context().dag_id

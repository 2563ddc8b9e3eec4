"""Why a DAG file is being parsed: for all its DAGs, or for the task that starts."""

from __future__ import annotations


def asked_dag() -> str | None:
    """The DAG that a starting task asks for; None when the whole file is being parsed."""
    from airflow.sdk import get_parsing_context

    return get_parsing_context().dag_id

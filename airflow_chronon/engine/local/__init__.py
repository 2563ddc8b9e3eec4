"""The embedded engine: DuckDB over Parquet folders."""

from airflow_chronon.engine.local.runner import LocalRunner

__all__ = ["LocalRunner"]

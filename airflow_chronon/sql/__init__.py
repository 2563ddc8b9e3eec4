"""Spark SQL for DuckDB, and views over Parquet folders: what catalogs and the embedded engine share."""

"""Spark SQL over Parquet folders: what it may reach."""

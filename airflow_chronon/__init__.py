"""An Airflow provider for compiled Chronon confs (one DAG per version, runs on partition grids) and for scheduled jobs."""

__version__ = "0.1.0"

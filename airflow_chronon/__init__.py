"""An Airflow provider that runs compiled Chronon confs: one DAG per conf version, runs on partition grids."""

__version__ = "0.1.0"

"""``python -m airflow_chronon``: the same as ``airflow-chronon``."""

from airflow_chronon.cli.main import run

if __name__ == "__main__":
    run()

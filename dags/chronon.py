"""Airflow DAGs of the Chronon confs beside this file, one per conf version."""

from airflow_chronon.dags import build_dags

globals().update(build_dags(near=__file__))

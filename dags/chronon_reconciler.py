"""Keeps Airflow as the Chronon confs beside this file say: retires what is gone, unpauses, replays what was missed."""

from airflow_chronon.airflow.dags.reconciler import build_reconciler

dag = build_reconciler(near=__file__)
globals()[dag.dag_id] = dag

"""Shows every bad Chronon conf as an import error of Airflow, without touching the good DAGs."""

from airflow_chronon.dags import raise_import_errors

raise_import_errors(near=__file__)

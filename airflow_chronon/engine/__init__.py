"""Runners: who does the work of a run. No Airflow here."""

"""Runners: who does the work of a run, the embedded engine or a command. No Airflow here."""

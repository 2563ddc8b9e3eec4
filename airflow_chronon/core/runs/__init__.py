"""Runs in Airflow: what became of each partition, who writes first, what a replay consists of."""

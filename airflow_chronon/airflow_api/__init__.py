"""Airflow's REST API as this package needs it: one protocol, the real client, and a fake for tests."""

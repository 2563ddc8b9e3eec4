"""What an ``airflow/`` folder of a Chronon repository did, read without running it, and what takes its place."""

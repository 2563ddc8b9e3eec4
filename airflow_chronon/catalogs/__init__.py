"""Catalogs: where partitions are seen. No Airflow here."""

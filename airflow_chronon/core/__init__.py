"""The pure core: no Airflow, no disk, no clock. Instants come in as arguments."""

"""The page of partitions in Airflow's own pages: its module for the browser, and the routes that answer it."""

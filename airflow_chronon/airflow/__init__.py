"""The Airflow layer: thin adapters from the core, the catalogs and the runners to Airflow's own classes."""

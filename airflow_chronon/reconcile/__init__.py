"""Making Airflow what the tree says: gather the facts, build the plan, apply it (C22 to C25, H13)."""

"""What is remembered of each DAG: one record per DAG id, its schedule revisions and its manifest."""

"""How the DAGs of confs, of jobs and of the reconciler are put together."""

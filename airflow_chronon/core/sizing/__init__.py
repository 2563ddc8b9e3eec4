"""How large an Airflow has to be for a tree of confs and jobs: what the tree asks for, figures of the benchmarks, a simulated scheduler."""

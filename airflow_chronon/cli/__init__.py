"""The command line. Nothing here imports Airflow until a command needs a running one."""

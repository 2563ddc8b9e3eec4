"""The pure core: what confs, jobs, schedules, waits, settings and plans mean.

No Airflow, disk, network, process or clock in here: instants come in as arguments.
"""

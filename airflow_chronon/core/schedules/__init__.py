"""Schedules of confs and jobs: which runs there are, what each is for, and what was missed."""

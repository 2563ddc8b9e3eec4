"""Schedules: which runs there are, and what was missed."""

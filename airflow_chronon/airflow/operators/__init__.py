"""Operators: the tasks that do the work, and the check that it landed."""

"""Timetables: which runs there are, with their partition keys."""

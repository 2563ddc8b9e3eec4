"""Joins: the left rows, and what their right parts add."""

"""Partition grids, and how their partitions are written and read."""

"""Partition grids, how their partitions are named, and how people may type them."""

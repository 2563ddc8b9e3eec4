"""Runs: what they are asked for, what they got, what became of each partition."""

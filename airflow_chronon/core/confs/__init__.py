"""Compiled Chronon confs: from documents to plans."""

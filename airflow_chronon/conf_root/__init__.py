"""The tree that people drop, on disk: confs, job files, settings."""

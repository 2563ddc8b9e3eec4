"""The conf root on disk: compiled confs, job files and settings, as people put them there."""

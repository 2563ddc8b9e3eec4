"""A conf root on disk: the folder that holds compiled confs, job files and the settings."""

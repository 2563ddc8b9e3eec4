"""The state folder: what a deployment remembers between two reconciles."""

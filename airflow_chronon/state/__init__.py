"""The state folder: what a deployment remembers from one reconcile to the next."""

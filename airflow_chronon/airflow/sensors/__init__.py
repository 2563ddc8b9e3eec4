"""Sensors and their triggers: waits that hold no worker."""

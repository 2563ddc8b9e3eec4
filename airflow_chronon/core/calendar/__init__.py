"""Instants, half-open windows of time, and crons."""

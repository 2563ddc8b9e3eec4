"""Instants and crons."""

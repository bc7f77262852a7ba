"""Recall before a turn."""

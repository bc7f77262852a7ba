"""Embedders that run a neural model in this process; each needs an extra."""

"""Embedders behind HTTP: one module for each provider, one client for all."""

"""Plugins: the hooks (`hookspecs`), finding and choosing them, and calling them safely."""

from lamella.plugins.hookspecs import hookimpl

__all__ = ["hookimpl"]

"""Which hooks a plugin object implements, and what is wrong with how it does."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from lamella.config.structure import near_match
from lamella.plugins import hookspecs

_MARKER = f"{hookspecs.PROJECT}_impl"


def _parameters_by_hook() -> Mapping[str, tuple[str, ...]]:
    marker = f"{hookspecs.PROJECT}_spec"
    found = {n: f for n, f in vars(hookspecs).items() if callable(f) and hasattr(f, marker)}
    return {name: tuple(inspect.signature(function).parameters) for name, function in found.items()}


PARAMETERS = _parameters_by_hook()
KNOWN_HOOKS = frozenset(PARAMETERS)
# Asked where no event loop runs.
_PLAIN_ONLY = frozenset(name for name, parameters in PARAMETERS.items() if parameters == ("context",))


def implemented_hooks(plugin: Any) -> tuple[str, ...]:
    """Names of the methods that a plugin marks with `@hookimpl`, known or not."""
    names = (n for n in dir(plugin) if not n.startswith("__"))
    return tuple(n for n in names if hasattr(getattr(plugin, n, None), _MARKER))


def objection(plugin: Any) -> str:
    """Why a plugin cannot be used, by the first of its hooks that is wrong; empty when none is."""
    return next(filter(None, (_objection(name, getattr(plugin, name)) for name in implemented_hooks(plugin))), "")


def _objection(name: str, function: Any) -> str:
    if name not in KNOWN_HOOKS:
        return f"implements unknown hook {name!r}{near_match(name, sorted(KNOWN_HOOKS))}"
    options = getattr(function, _MARKER)
    if options["wrapper"] or options["hookwrapper"]:
        return f"{name} is a hook wrapper; hooks are called one by one and cannot be wrapped"
    if name in _PLAIN_ONLY and (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)):
        return f"{name} is async; this hook is called without an event loop, write a plain def"
    known = PARAMETERS[name]
    for parameter in inspect.signature(function).parameters.values():
        optional = parameter.default is not parameter.empty or parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        )
        if parameter.name not in known and not optional:
            near = near_match(parameter.name, known)
            return f"{name} has a parameter {parameter.name!r}{near}; there are: {', '.join(known)}"
    return ""

"""Vectors of new texts, which QMD makes with a model that the user configures."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from attrs import evolve, frozen

from lamella_qmd_backend.config import Config
from lamella_qmd_backend.faults import failure_of
from lamella_qmd_backend.output import parse_embedded, parse_status
from lamella_qmd_backend.runner import INDEX, Runner
from lamella_qmd_backend.state import State

_FIRST_WAIT, _LONGEST_WAIT, _MOST_DOUBLINGS = 60.0, 3600.0, 6
_LOG_CHARS = 20_000


@frozen(slots=True)
class Embedded:
    """What `qmd embed` has changed in the state, and how many texts were given a vector."""

    changed: Mapping[str, Any]
    count: int = 0

    def noted(self, state: State) -> State:
        return evolve(state, **self.changed)


def is_embedding_due(state: State, config: Config, *, force: bool = False) -> bool:
    """Whether a model is configured and new texts may wait no longer; not so soon after a failure,
    unless the index is made anew (`force`)."""
    now = time.time()
    if not config.models.embed or force:
        return bool(config.models.embed)
    if now < state.embed_after:
        return False
    return not state.embedded_at or now - state.embedded_at >= config.update.embed_interval_minutes * 60


def embed(runner: Runner, state: State, config: Config) -> Embedded:
    """Give new texts vectors. A failure is noted, and puts the next attempt off: 60 s, doubled up to an hour."""
    began = time.time()
    seconds = config.update.embed_timeout_seconds
    ran = runner.run(*INDEX, "embed", timeout=seconds, cap=_LOG_CHARS, tail=True)
    if ran.code == 0 and not ran.timed_out:
        told = runner.run(*INDEX, "status", timeout=config.limits.timeout_seconds, cap=_LOG_CHARS)
        pending = parse_status(told.out).pending or 0
        fields = {"embedded_at": began, "pending": pending, "embed_failures": 0, "embed_after": 0.0, "embed_error": ""}
        return Embedded(fields, parse_embedded(ran.out))
    problem = str(failure_of(ran, "qmd embed"))
    wait = min(_FIRST_WAIT * 2 ** min(state.embed_failures, _MOST_DOUBLINGS), _LONGEST_WAIT)
    later = time.time() + wait
    return Embedded({"embed_failures": state.embed_failures + 1, "embed_after": later, "embed_error": problem})

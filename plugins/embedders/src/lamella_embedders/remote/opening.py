"""From a provider and its settings to an embedder."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

from attrs import evolve

from lamella.errors import ConfigError, Problem
from lamella_embedders.config import SECTION, RemoteSettings
from lamella_embedders.remote.client import Client
from lamella_embedders.remote.embedder import Efforts, RemoteEmbedder
from lamella_embedders.remote.keys import find_key
from lamella_embedders.remote.pace import Clock, Effort, Pace
from lamella_embedders.remote.wire import Limits, ModelFacts, Provider, Wire
from lamella_embedders.vectors import checked

_QUERY_TRIES = 2
_PROBE = "length"
# Some room below the limit in tokens, for the prefixes that providers put before a text.
_ROOM = 64


def open_remote(
    provider: Provider,
    settings: RemoteSettings | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> RemoteEmbedder:
    """An embedder that is ready to use.

    The provider is asked for one vector when the length of its vectors is not known otherwise.
    Raises `ConfigError` (`NoKey` without a key), and `ModelError` when that question fails.
    """
    own = settings or RemoteSettings()
    places = os.environ if environ is None else environ
    key = find_key(provider.name, own, provider.key_env, places, required=provider.key_required)
    model = _model(provider, own)
    facts = provider.models.get(model)
    _check_dimensions(provider.name, model, facts, own.dimensions)
    client = Client(
        name=provider.name,
        base_url=own.base_url or provider.base_url,
        headers={**(provider.key_header(key) if key else {}), **own.headers},
        secret=key,
    )
    asked = 0 if facts is not None and own.dimensions == facts.dimensions else own.dimensions
    wire = provider.wire(model, asked)
    limits = _limits(provider.limits, facts, own)
    pace = Pace(limits.concurrency, own.cooldown, clock)
    dimensions = own.dimensions or (facts.dimensions if facts else _ask_length(client, wire, pace, own))
    return RemoteEmbedder(
        _identity(provider, own, model, dimensions),
        dimensions,
        client=client,
        wire=wire,
        pace=pace,
        limits=limits,
        efforts=Efforts(
            documents=Effort(own.tries, own.timeout), query=Effort(_QUERY_TRIES, own.timeout, own.query_timeout)
        ),
    )


def _model(provider: Provider, own: RemoteSettings) -> str:
    """The model's name; at the provider's own address without a prefix that only names the provider."""
    model = own.model.strip() or provider.model
    return model if own.base_url else model.removeprefix(f"{provider.name}/").removeprefix("models/")


def _identity(provider: Provider, own: RemoteSettings, model: str, dimensions: int) -> str:
    """Another address counts as another model: what runs there is only a name."""
    address = own.base_url.rstrip("/")
    elsewhere = f"@{address}" if address and address != provider.base_url else ""
    return f"{provider.name}/{model}/{dimensions}{elsewhere}"


def _check_dimensions(name: str, model: str, facts: ModelFacts | None, wanted: int) -> None:
    if facts is None or wanted in (0, facts.dimensions):
        return
    longest = facts.longest or facts.dimensions
    if not facts.shortens or wanted > longest:
        most = f"at most {longest}" if facts.shortens else f"{facts.dimensions}, the only length of {model}"
        raise ConfigError([Problem(f"{SECTION}.{name}.dimensions", f"expected {most}, found {wanted}")])


def _limits(usual: Limits, facts: ModelFacts | None, own: RemoteSettings) -> Limits:
    input_bytes = max(_ROOM, facts.input_tokens - _ROOM) if facts else usual.input_bytes
    limits = Limits(
        items=own.batch_items or usual.items,
        bytes=own.batch_bytes or usual.bytes,
        input_bytes=max(4, own.input_bytes or input_bytes),
        concurrency=own.concurrency or usual.concurrency,
    )
    return evolve(limits, input_bytes=min(limits.input_bytes, max(4, limits.bytes)))


def _ask_length(client: Client, wire: Wire, pace: Pace, own: RemoteSettings) -> int:
    effort = Effort(_QUERY_TRIES, own.timeout, own.timeout)
    body = wire.body([_PROBE], "document")
    answer = pace.run(lambda t: client.post(wire.path, body, timeout=t), effort, threading.Event())
    return int(checked(wire.vectors(answer), count=1, dimensions=0, source=client.name).shape[1])

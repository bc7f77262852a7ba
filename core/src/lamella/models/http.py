"""The HTTP client of one model call.

A client lives for a single call. So nothing is bound to an event loop, and whatever ends a call,
be it an answer, a fault or a cancelled task, closes its connection: not every provider library
closes a stream that is given up. Turns are seconds apart, which is longer than idle connections
are kept anyway.

Imports the HTTP library of the provider clients, so only adapters may import this module.
"""

from __future__ import annotations

import ssl
from functools import lru_cache

import httpx2

from lamella.models.endpoint import Endpoint


def open_client(endpoint: Endpoint) -> httpx2.AsyncClient:
    """A client with the endpoint's headers and time-out; use it with `async with`."""
    return httpx2.AsyncClient(
        headers=dict(endpoint.headers),
        timeout=httpx2.Timeout(endpoint.timeout, pool=None),
        follow_redirects=True,
        verify=_tls(),
    )


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """Loading certificates takes longer than the rest of a client, so all share one context."""
    return httpx2.create_ssl_context()

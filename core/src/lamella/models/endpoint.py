"""Where a model is, who it is, and what is known about it: what every adapter is made from."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import Factory, field, frozen

from lamella.types.messages import Cost, Usage
from lamella.types.model import ModelInfo


@frozen(slots=True)
class Endpoint:
    """One model at one address.

    `base_url` is empty for the provider's own address. `timeout` is the longest silence of the
    server in seconds. `overflow_patterns` are more regular expressions that mark an error as a
    full window.
    """

    provider: str
    model: str
    info: ModelInfo
    api_key: str = field(default="", repr=False)
    base_url: str = ""
    headers: Mapping[str, str] = field(default=Factory(dict), repr=False)
    timeout: float = 600.0
    overflow_patterns: tuple[str, ...] = ()


def price(info: ModelInfo, *, input: int, output: int, cache_read: int, cache_write: int) -> Usage:
    """Usage with what it cost. `input` counts neither reads from a cache nor writes to one."""
    costs = (
        input * info.cost_input / 1e6,
        output * info.cost_output / 1e6,
        cache_read * info.cost_cache_read / 1e6,
        cache_write * info.cost_cache_write / 1e6,
    )
    total = input + output + cache_read + cache_write
    return Usage(input, output, cache_read, cache_write, total, Cost(*costs, total=sum(costs)))

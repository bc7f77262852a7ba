"""Anthropic's messages.

Imports pydantic-ai and the client, so it is imported only when such a model is made.
"""

from __future__ import annotations

import httpx2
from anthropic import AsyncAnthropic
from pydantic_ai import messages as pai
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.profiles.anthropic import ANTHROPIC_THINKING_BUDGET_MAP
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.settings import ModelSettings

from lamella.models.adapter import AnyModel, ProviderModel, output_limit, thinking_setting
from lamella.models.blocks import BlockMapping
from lamella.models.endpoint import Endpoint
from lamella.types.messages import ThinkingBlock
from lamella.types.model import ModelRequest

NO_KEY = "none"
_REDACTED = "redacted_thinking"
_LEAST_BUDGET = 1024


def make(endpoint: Endpoint) -> ProviderModel:
    """A model of any server that speaks Anthropic's messages."""
    return ProviderModel(endpoint, AnthropicMessages())


class AnthropicBlocks(BlockMapping):
    """Thinking goes back with its signature, redacted thinking as the payload that came."""

    tool_errors = True

    def thinking_part(self, block: ThinkingBlock, system: str) -> pai.ThinkingPart | None:
        if not block.signature:
            return None  # cut off before it was signed: the server would refuse it
        kind = _REDACTED if block.redacted else None
        text = "" if block.redacted else block.thinking
        return pai.ThinkingPart(text, id=kind, signature=block.signature, provider_name=system)

    def thinking_block(self, part: pai.ThinkingPart) -> ThinkingBlock:
        return ThinkingBlock(part.content, part.signature or None, redacted=part.id == _REDACTED)


class AnthropicMessages:
    """The messages wire format."""

    api = "anthropic-messages"
    mapping = AnthropicBlocks()

    def model(self, endpoint: Endpoint, http: httpx2.AsyncClient) -> AnyModel:
        client = AsyncAnthropic(
            api_key=endpoint.api_key or NO_KEY,
            base_url=endpoint.base_url or None,
            timeout=endpoint.timeout,
            max_retries=0,
            default_headers=_headers(endpoint),
            http_client=http,
        )
        return AnthropicModel(endpoint.model, provider=AnthropicProvider(anthropic_client=client))

    def settings(self, request: ModelRequest, endpoint: Endpoint, model: AnyModel) -> ModelSettings:
        limit = output_limit(request, endpoint)
        settings = AnthropicModelSettings(
            max_tokens=limit,
            thinking=thinking_setting(request),
            anthropic_cache_instructions=True,
            anthropic_cache_tool_definitions=True,
            anthropic_cache_messages=True,
        )
        # The server refuses a temperature beside thinking.
        if request.temperature is not None and request.thinking == "off":
            settings["temperature"] = request.temperature
        adaptive = model.profile.get("anthropic_supports_adaptive_thinking", False)
        if request.thinking != "off" and not adaptive:
            _bound_thinking(settings, ANTHROPIC_THINKING_BUDGET_MAP[request.thinking], limit)
        return settings


def _headers(endpoint: Endpoint) -> dict[str, str]:
    """Clients send the key as a bearer token by now; servers that copy the format know the older header."""
    key = {"X-Api-Key": endpoint.api_key} if endpoint.base_url and endpoint.api_key else {}
    return {**key, **endpoint.headers}


def _bound_thinking(settings: AnthropicModelSettings, budget: int, limit: int) -> None:
    """Thinking counts towards the reply's limit: leave at least half of it for the answer."""
    budget = min(budget, limit // 2)
    if budget < _LEAST_BUDGET:
        settings["thinking"] = False
    else:
        settings["anthropic_thinking"] = {"type": "enabled", "budget_tokens": budget}

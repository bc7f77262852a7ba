"""Google's generateContent, as the Gemini API speaks it.

Imports pydantic-ai and the client, so it is imported only when such a model is made.
"""

from __future__ import annotations

from typing import Any

import httpx2
from pydantic_ai import messages as pai
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.settings import ModelSettings

from lamella.models.adapter import AnyModel, ProviderModel, output_limit, thinking_setting
from lamella.models.blocks import BlockMapping
from lamella.models.endpoint import Endpoint
from lamella.types.messages import TextBlock, ThinkingBlock, ToolCall
from lamella.types.model import ModelRequest

NO_KEY = "none"
_SIGNATURE = "thought_signature"


def make(endpoint: Endpoint) -> ProviderModel:
    """A model of the Gemini API."""
    return ProviderModel(endpoint, GeminiGenerate())


class GeminiBlocks(BlockMapping):
    """Any part may carry a signature (base64); it goes back on the very part that it came with."""

    tool_errors = True

    def text_part(self, block: TextBlock, system: str) -> pai.TextPart:
        return pai.TextPart(block.text, **_signed(block.signature, system))

    def thinking_part(self, block: ThinkingBlock, system: str) -> pai.ThinkingPart | None:
        if not block.thinking:
            return None
        return pai.ThinkingPart(block.thinking, **_signed(block.signature, system))

    def call_part(self, call: ToolCall, system: str) -> pai.ToolCallPart:
        return pai.ToolCallPart(call.name, dict(call.arguments), call.id, **_signed(call.thought_signature, system))

    def text_block(self, part: pai.TextPart) -> TextBlock:
        return TextBlock(part.content, _signature(part))

    def thinking_block(self, part: pai.ThinkingPart) -> ThinkingBlock:
        return ThinkingBlock(part.content, _signature(part))

    def call_block(self, part: pai.ToolCallPart, *, done: bool) -> ToolCall:
        call = super().call_block(part, done=done)
        return ToolCall(call.id, call.name, call.arguments, _signature(part), call.extra)


class GeminiGenerate:
    """The generateContent wire format."""

    api = "google-generative-ai"
    mapping = GeminiBlocks()

    def model(self, endpoint: Endpoint, http: httpx2.AsyncClient) -> AnyModel:
        provider = GoogleProvider(
            api_key=endpoint.api_key or NO_KEY, base_url=endpoint.base_url or None, http_client=http
        )
        return GoogleModel(endpoint.model, provider=provider)

    def settings(self, request: ModelRequest, endpoint: Endpoint, model: AnyModel) -> ModelSettings:
        settings = ModelSettings(thinking=thinking_setting(request), max_tokens=output_limit(request, endpoint))
        if request.temperature is not None:
            settings["temperature"] = request.temperature
        return settings


def _signed(signature: str | None, system: str) -> dict[str, Any]:
    if not signature:
        return {}
    return {"provider_name": system, "provider_details": {_SIGNATURE: signature}}


def _signature(part: pai.TextPart | pai.ThinkingPart | pai.ToolCallPart) -> str | None:
    found = (part.provider_details or {}).get(_SIGNATURE)
    return found if isinstance(found, str) else None

"""OpenAI's chat completions, spoken by OpenAI and by many other servers.

Imports pydantic-ai and the client, so it is imported only when such a model is made.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx2
from openai import AsyncOpenAI
from pydantic_ai import messages as pai
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings

from lamella.models.adapter import AnyModel, ProviderModel, output_limit, thinking_setting
from lamella.models.blocks import BlockMapping
from lamella.models.endpoint import Endpoint
from lamella.types.messages import ThinkingBlock
from lamella.types.model import ModelRequest

# Sent where a server needs no key; the client insists on one.
NO_KEY = "none"

# Thinking that came as tags inside the text, not in a field of its own.
_IN_TEXT = "content"


def make(endpoint: Endpoint) -> ProviderModel:
    """A model of any server that speaks chat completions."""
    return ProviderModel(endpoint, OpenAIChat())


class OpenAIChatBlocks(BlockMapping):
    """Thinking goes back in the field that it came from, whose name is kept as its signature."""

    def thinking_part(self, block: ThinkingBlock, system: str) -> pai.ThinkingPart | None:
        if not block.signature:
            return None
        return pai.ThinkingPart(block.thinking, id=block.signature, provider_name=system)

    def thinking_block(self, part: pai.ThinkingPart) -> ThinkingBlock:
        return ThinkingBlock(part.content, part.id if part.id != _IN_TEXT else None)


class OpenAIChat:
    """The chat completions wire format."""

    api = "openai-completions"
    mapping = OpenAIChatBlocks()

    def model(self, endpoint: Endpoint, http: httpx2.AsyncClient) -> AnyModel:
        client = AsyncOpenAI(
            api_key=endpoint.api_key or NO_KEY,
            base_url=endpoint.base_url or None,
            timeout=endpoint.timeout,
            max_retries=0,
            default_headers=dict(endpoint.headers),
            http_client=http,
        )
        if is_openai(endpoint):
            profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
            return OpenAIChatModel(endpoint.model, provider=OpenAIProvider(openai_client=client), profile=profile)
        # These came from the environment and are meant for OpenAI alone.
        client.organization = client.project = None
        provider = OpenAICompatibleProvider(endpoint.provider, openai_client=client)
        return OpenAIChatModel(endpoint.model, provider=provider, profile=_compatible(endpoint))

    def settings(self, request: ModelRequest, endpoint: Endpoint, model: AnyModel) -> ModelSettings:
        settings = ModelSettings(thinking=thinking_setting(request))
        # Models that reason refuse a temperature.
        reasons = endpoint.info.reasoning or model.profile.get("openai_supports_reasoning", False)
        if request.temperature is not None and not reasons:
            settings["temperature"] = request.temperature
        if request.max_tokens is not None:
            settings["max_tokens"] = output_limit(request, endpoint)
        return settings


def is_openai(endpoint: Endpoint) -> bool:
    """True for OpenAI's own servers, which take more than the servers that copy them."""
    if not endpoint.base_url:
        return endpoint.provider == "openai"
    return urlsplit(endpoint.base_url).hostname == "api.openai.com"


def _compatible(endpoint: Endpoint) -> OpenAIModelProfile:
    profile = OpenAIModelProfile(
        openai_supports_strict_tool_definition=False,
        openai_chat_supports_max_completion_tokens=False,
    )
    if endpoint.info.reasoning:
        profile["supports_thinking"] = True
    return profile

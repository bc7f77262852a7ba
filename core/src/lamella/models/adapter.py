"""`ProviderModel`: lamella's `Model` over one model of pydantic-ai.

Imports pydantic-ai, so it is imported only when such a model is made.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

import httpx2
from attrs import evolve
from pydantic_ai import direct
from pydantic_ai.models import Model as PydanticModel
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.settings import ThinkingLevel as PydanticThinking
from pydantic_ai.tools import ToolDefinition

from lamella.errors import ModelError
from lamella.models.blocks import BlockMapping
from lamella.models.endpoint import Endpoint
from lamella.models.failures import to_model_error
from lamella.models.history import Receiver, to_history
from lamella.models.http import open_client
from lamella.models.replies import ReplyBuilder, judge_end, with_usage
from lamella.types.messages import Usage
from lamella.types.model import Delta, Done, ModelRequest, StreamEvent

AnyModel: TypeAlias = PydanticModel[Any]


class Wire(Protocol):
    """What an adapter has to say about its wire format."""

    @property
    def api(self) -> str:
        """Name of the format as transcripts have it."""

    @property
    def mapping(self) -> BlockMapping:
        """How blocks and parts match."""

    def model(self, endpoint: Endpoint, http: httpx2.AsyncClient) -> AnyModel:
        """The model over a client that never retries by itself."""
        ...

    def settings(self, request: ModelRequest, endpoint: Endpoint, model: AnyModel) -> ModelSettings:
        """The call's settings: limits, thinking, caching."""
        ...


class ProviderModel:
    """One model behind one wire format. Holds neither a conversation nor a connection."""

    def __init__(self, endpoint: Endpoint, wire: Wire) -> None:
        self._endpoint = endpoint
        self._wire = wire

    def __repr__(self) -> str:
        return f"ProviderModel({self.provider}/{self.id}, {self.api})"

    @property
    def provider(self) -> str:
        return self._endpoint.provider

    @property
    def id(self) -> str:
        return self._endpoint.model

    @property
    def api(self) -> str:
        return self._wire.api

    @property
    def context_window(self) -> int:
        return self._endpoint.info.context_window

    @property
    def max_output(self) -> int:
        return self._endpoint.info.max_output

    @property
    def supports_images(self) -> bool:
        return self._endpoint.info.supports_images

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """See `lamella.types.model.Model.stream`."""
        builder = ReplyBuilder.begin(self.provider, self.id, self.api, self._wire.mapping)
        try:
            async with open_client(self._endpoint) as http, self._open(request, http) as stream:
                yield Delta("start", builder.partial)
                async for event in stream:
                    for delta in builder.feed(event):
                        yield delta
                for delta in builder.close_blocks():
                    yield delta
                done = self._done(builder, stream)
        except Exception as error:  # noqa: BLE001 - whatever a client raises must reach the caller as Done.error
            done = self._failed(builder, error)
        yield done

    def _open(self, request: ModelRequest, http: httpx2.AsyncClient) -> AbstractAsyncContextManager[StreamedResponse]:
        model = self._wire.model(self._endpoint, http)
        receiver = Receiver(self.provider, self.id, self.api, model.system, self.supports_images)
        tools = [
            ToolDefinition(name=t.name, description=t.description, parameters_json_schema=dict(t.parameters))
            for t in request.tools
        ]
        return direct.model_request_stream(
            model,
            to_history(request, receiver, self._wire.mapping),
            model_settings=self._wire.settings(request, self._endpoint, model),
            model_request_parameters=ModelRequestParameters(function_tools=tools),
            instrument=False,
        )

    def _done(self, builder: ReplyBuilder, stream: StreamedResponse) -> Done:
        message = with_usage(builder.partial, stream.usage, self._endpoint.info)
        raw = (stream.provider_details or {}).get("finish_reason")
        stop, error = judge_end(message, stream.finish_reason, raw if isinstance(raw, str) else "")
        text = str(error) if error is not None else None
        return Done(evolve(message, stop_reason=stop, error_message=text), error)

    def _failed(self, builder: ReplyBuilder, error: Exception) -> Done:
        failure: ModelError = to_model_error(error, provider=self.provider, patterns=self._endpoint.overflow_patterns)
        for _ in builder.close_blocks():
            pass
        message = evolve(builder.partial, usage=Usage(), stop_reason="error", error_message=str(failure))
        return Done(message, failure)


def output_limit(request: ModelRequest, endpoint: Endpoint) -> int:
    """Most tokens of this reply: what was asked for, within what the model gives."""
    limit = endpoint.info.max_output
    return limit if request.max_tokens is None else max(1, min(request.max_tokens, limit))


def thinking_setting(request: ModelRequest) -> PydanticThinking:
    """The thinking level in pydantic-ai's terms, which each model's profile turns into its own."""
    return False if request.thinking == "off" else request.thinking

"""Exceptions of pydantic-ai and its clients as lamella's `ModelError`s.

Imports pydantic-ai, so only adapters may import this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import httpx2
from pydantic_ai import exceptions as pai

from lamella.errors import ModelError, ModelRejected, ModelTransient
from lamella.models.classify import classify_error

# Gateways answer with whole web pages; a transcript needs only the beginning.
_LONGEST = 2_000


def to_model_error(error: Exception, *, provider: str, patterns: Sequence[str] = ()) -> ModelError:
    """The error that the caller sees; the original stays reachable as its cause."""
    converted = _convert(error, provider, patterns)
    converted.__cause__ = error
    return converted


def _convert(error: Exception, provider: str, patterns: Sequence[str]) -> ModelError:
    match error:
        case pai.ModelConnectionError() | pai.ModelRequestTimeout():
            return ModelTransient(f"Connection error: {_reason(error)}", retry_after=error.retry_after)
        case pai.ModelAPIError():
            code = " ".join(c for c in (error.provider_error_code, error.provider_error_type) if c)
            return classify_error(
                error_text(error),
                status=error.status_code if isinstance(error, pai.ModelHTTPError) else None,
                code=code or None,
                retry_after=error.retry_after,
                provider=provider,
                patterns=patterns,
            )
        case httpx2.TransportError() | OSError():
            return ModelTransient(f"Connection error: {_reason(error)}")
        case pai.UnexpectedModelBehavior():
            return ModelTransient(f"The provider sent a reply that cannot be read: {error}")
        case _:
            return ModelRejected(f"The request could not be sent: {type(error).__name__}: {error}")


def error_text(error: pai.ModelAPIError) -> str:
    """The server's own sentence where there is one, else the status."""
    found = _message(error.body)
    if found:
        return found if len(found) <= _LONGEST else f"{found[:_LONGEST]}..."
    if isinstance(error, pai.ModelHTTPError):
        return f"{error.status_code} status code (no body)"
    return error.message


def _message(body: object) -> str:
    """The sentence in an error body: objects, lists and plain texts of all the shapes in use."""
    if isinstance(body, str):
        return body.strip()
    if isinstance(body, Mapping):
        for key in ("error", "message", "detail"):
            if found := _message(body.get(key)):
                return found
    if isinstance(body, list) and body:
        return _message(body[0])
    return ""


def _reason(error: Exception) -> str:
    """The innermost text: clients wrap what the network said in sentences that say less."""
    deepest: BaseException = error
    while deepest.__cause__ is not None:
        deepest = deepest.__cause__
    return str(deepest) or str(error) or type(deepest).__name__

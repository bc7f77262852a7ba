"""One HTTP request: JSON out, JSON in, every failure as one of lamella's `ModelError`s.

Standard library only; see docs/decisions/0013-embedding-providers.md.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
import urllib.request
from collections.abc import Mapping
from email.message import Message
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from attrs import field, frozen

from lamella.errors import ModelError, ModelRejected, ModelTransient
from lamella.models.classify import classify_error

_MOST_BYTES = 256 * 2**20
_MOST_ERROR_BYTES = 64 * 2**10
_LONGEST_MESSAGE = 500
_LOOPBACK = re.compile(r"localhost|127\.\d+\.\d+\.\d+|::1")
_RETRY_DELAY = re.compile(r'"retryDelay"\s*:\s*"([\d.]+)s"')  # Gemini tells it in the body


@frozen(slots=True)
class Client:
    """Sends requests to one address. `secret` is never shown, also when a server repeats it."""

    name: str
    base_url: str
    headers: Mapping[str, str] = field(repr=False)
    secret: str = field(default="", repr=False)

    def post(self, path: str, body: Mapping[str, Any], *, timeout: float) -> Any:
        """The answer's JSON. `timeout` in seconds, for the whole exchange. Raises `ModelError`."""
        deadline = time.monotonic() + timeout
        request = urllib.request.Request(
            self.base_url.rstrip("/") + path,
            data=json.dumps(body, separators=(",", ":")).encode(),
            headers={"User-Agent": "lamella", **self.headers, "Content-Type": "application/json"},
            method="POST",
        )
        try:
            with _opener(self.base_url).open(request, timeout=timeout) as response:
                data = _read(response, deadline)
        except HTTPError as error:
            with error:
                raise self._refused(error, deadline) from None
        except TimeoutError:
            raise ModelTransient(f"{self.name}: no answer within {timeout:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error, timeout) from None
        return self._parsed(data)

    def _parsed(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except ValueError:
            hint = f"Is {self.base_url} the address of an API?"
            raise ModelError(f"{self.name}: the answer is not JSON", hint=hint) from None

    def _refused(self, error: HTTPError, deadline: float) -> ModelError:
        try:
            text = _read(error, deadline, _MOST_ERROR_BYTES).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            text = ""  # the status says enough
        if 300 <= error.code < 400:
            # Following it would carry the key and the notes to another server.
            return ModelRejected(f"{self.name}: the server answers with a redirect", status=error.code)
        message, code = _sentence(text)
        shown = self._without_secret(message)[:_LONGEST_MESSAGE] or f"status {error.code}"
        wait = _retry_after(error.headers, text, time.time())
        return classify_error(
            f"{self.name}: {shown}", status=error.code, code=code, retry_after=wait, provider=self.name
        )

    def _unreachable(self, error: Exception, timeout: float) -> ModelError:
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, TimeoutError):
            return ModelTransient(f"{self.name}: no answer within {timeout:g} s")
        if isinstance(reason, ssl.SSLCertVerificationError):
            hint = "SSL_CERT_FILE names a file with the certificates to trust."
            return ModelRejected(f"{self.name}: {self.base_url}: {reason.verify_message}", hint=hint)
        shown = self._without_secret(str(reason)) or type(reason).__name__
        return ModelTransient(f"{self.name}: {self.base_url}: connection failed: {shown}")

    def _without_secret(self, text: str) -> str:
        return text.replace(self.secret, "***") if self.secret else text


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


@lru_cache(maxsize=32)
def _opener(base_url: str) -> urllib.request.OpenerDirector:
    handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
    if base_url.startswith("https:"):
        handlers.append(urllib.request.HTTPSHandler(context=_tls()))
    if _LOOPBACK.fullmatch(urlsplit(base_url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))  # no proxy stands between a machine and itself
    return urllib.request.build_opener(*handlers)


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _read(response: Any, deadline: float, limit: int = _MOST_BYTES) -> bytes:
    """The body. A server that sends a byte now and then must not hold the caller for ever."""
    data = bytearray()
    while chunk := response.read1(2**16):
        data += chunk
        if time.monotonic() > deadline:
            raise TimeoutError
        if len(data) > limit:
            raise http.client.HTTPException(f"more than {limit} bytes")
    missing = getattr(response, "length", None)
    if missing:
        raise http.client.IncompleteRead(bytes(data), missing)
    return bytes(data)


def _sentence(text: str) -> tuple[str, str | None]:
    """(message, code) of an error body; the body itself when it has another shape."""
    try:
        body = json.loads(text)
    except ValueError:
        return text.strip(), None
    found = body[0] if isinstance(body, list) and body else body
    if not isinstance(found, dict):
        return text.strip(), None
    error = found.get("error") or found
    if isinstance(error, str):
        return error, None
    if not isinstance(error, dict):
        return text.strip(), None
    message = next((m for k in ("message", "detail", "error") if isinstance(m := error.get(k), str)), text.strip())
    code = next((c for k in ("code", "type", "status", "error_type") if isinstance(c := error.get(k), str)), None)
    return message, code


def _retry_after(headers: Message, text: str, now: float) -> float | None:
    """Seconds that the server asks to wait: from a header (number or date) or Gemini's body."""
    milliseconds, plain = headers.get("retry-after-ms"), headers.get("retry-after")
    in_body = _RETRY_DELAY.search(text)
    try:
        if milliseconds:
            return _not_negative(float(milliseconds) / 1000)
        if plain:
            return _not_negative(float(plain))
        if in_body:
            return _not_negative(float(in_body[1]))
    except ValueError:
        pass  # a date, or nonsense
    try:
        return _not_negative(parsedate_to_datetime(plain).timestamp() - now) if plain else None
    except ValueError:
        return None


def _not_negative(seconds: float) -> float:
    if seconds != seconds:
        raise ValueError("not a number")
    return max(0.0, seconds)

"""The token that clients over HTTP show: where it comes from, and checking it."""

from __future__ import annotations

import hmac
import re
import stat
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, TypeAlias

from lamella.errors import UsageError

VARIABLE = "LAMELLA_MCP_TOKEN"
LEAST_CHARS = 16
_TOKEN = re.compile(r"[!-~]+")
_HINT = "`openssl rand -hex 32` makes a good one."

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


def read_token(path: Path) -> str:
    """The token in a file. Raises `UsageError` for a file that cannot be read or holds none."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--token-file {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise UsageError(f"--token-file {path}: expected a text file") from None
    return check_token(text, f"--token-file {path}")


def check_token(text: str, origin: str) -> str:
    """The token without the blanks around it. Raises `UsageError` for one that is too short or cannot be sent."""
    token = text.strip()
    if len(token) < LEAST_CHARS or not _TOKEN.fullmatch(token):
        raise UsageError(
            f"{origin}: expected a token of at least {LEAST_CHARS} ASCII characters without blanks, "
            f"found {len(token)} characters",
            hint=_HINT,
        )
    return token


def readable_by_others(path: Path) -> bool:
    """Whether other users of the machine may read a file."""
    return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))


class TokenGuard:
    """Lets through only requests with `Authorization: Bearer <token>`; all others get 401."""

    def __init__(self, app: App, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_known(scope["headers"]):
            await self._app(scope, receive, send)
            return
        body = b'{"error": "a valid bearer token is needed"}'
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"www-authenticate", b'Bearer realm="lamella"'),
        ]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _is_known(self, headers: list[tuple[bytes, bytes]]) -> bool:
        shown = [value for name, value in headers if name.lower() == b"authorization"]
        if len(shown) != 1:
            return False
        scheme, _, token = shown[0].partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token)

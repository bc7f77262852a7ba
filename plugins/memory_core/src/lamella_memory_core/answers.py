"""What the memory tools answer: the fields that OpenClaw's tools of these names give, and a few more. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lamella.errors import LamellaError, MemoryPathError
from lamella.types.host import SHARED_CHATS, ChatType
from lamella.types.memory import MemoryHit, MemoryResults, MemoryText
from lamella.types.results import ToolResult

NOT_ALLOWED = "MEMORY_PATH_NOT_ALLOWED"
_MODES = {"keyword": "fts-only"}
_QUOTA = ("insufficient_quota", "quota", "429")


def answer(payload: Mapping[str, Any]) -> ToolResult:
    """The payload as text for the model, and as it is for programs."""
    return ToolResult(json.dumps(payload, ensure_ascii=False, indent=2), payload)


def are_cited(citations: str, chat_type: ChatType) -> bool:
    """Whether results name their sources: always, never, or (`auto`) where one person reads them."""
    return citations == "on" or (citations == "auto" and chat_type not in SHARED_CHATS)


def found(results: MemoryResults, citations: str, *, cited: bool) -> dict[str, Any]:
    """The payload of a search."""
    payload: dict[str, Any] = {
        "results": [_hit(hit, cited=cited) for hit in results.hits],
        "provider": results.embedder or "none",
        "citations": citations,
        "mode": _MODES.get(results.mode, results.mode),
        "backend": results.backend,
    }
    if results.model:
        payload["model"] = results.model
    if results.degraded:
        payload["degraded"] = results.degraded.to_json()
        payload["warning"] = f"This may not be all that there is: {results.degraded.reason}."
    return payload


def unavailable(error: LamellaError) -> dict[str, Any]:
    """The payload of a search that could not be made."""
    text = str(error) or "memory search unavailable"
    if any(sign in text.lower() for sign in _QUOTA):
        warning = "Memory search is unavailable because the embedding provider's quota is exhausted."
        action = "Top up the provider's quota or switch to another one, then search again."
    else:
        warning = "Memory search is unavailable because of an embedding or index error."
        action = error.hint or "Check the configuration of memory, then search again."
    return {
        "results": [],
        "disabled": True,
        "unavailable": True,
        "error": text,
        "warning": f"{warning} Tell the user.",
        "action": action,
    }


def read(found: MemoryText, first: int, chars: int) -> dict[str, Any]:
    """The payload of lines that were read from line `first` on, cut to `chars` characters."""
    if found.status == "missing":
        return {"status": "not_found", "text": "", "path": found.path}
    shown, cut = _fitting(found.text, chars)
    count = shown.count("\n") + 1 if found.status == "ok" else 0
    payload: dict[str, Any] = {"status": "ok", "text": shown, "path": found.path, "from": first, "lines": count}
    following = first + count
    more = following <= found.total_lines and count > 0
    notices = [f"[Line {first} is longer than what can be shown; this is its beginning.]"] if cut else []
    notices += [f"[More content available. Use from={following} to continue.]"] if more else []
    if notices:
        payload |= {"text": "\n\n".join([shown, *notices]), "truncated": True}
    if more:
        payload["nextFrom"] = following
    return payload


def refused(path: str, error: LamellaError) -> dict[str, Any]:
    """The payload of a file that may not be, or could not be, read."""
    payload = {"path": path, "text": "", "status": "error", "error": str(error)}
    return {**payload, "code": NOT_ALLOWED} if isinstance(error, MemoryPathError) else payload


def _hit(hit: MemoryHit, *, cited: bool) -> dict[str, Any]:
    shown = hit.to_json()
    if cited:
        shown["snippet"] = f"{hit.snippet.strip()}\n\nSource: {hit.citation}"
        shown["citation"] = hit.citation
    return shown


def _fitting(text: str, limit: int) -> tuple[str, bool]:
    """As many whole lines as fit into `limit` characters; and whether the first one was cut to fit."""
    if len(text) <= limit:
        return text, False
    end = text.rfind("\n", 0, limit + 1)
    return (text[:end], False) if end >= 0 else (text[:limit], True)

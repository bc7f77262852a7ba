"""A transcript of Claude Code as one of lamella: pure, line by line.

What a line becomes depends on it and on those before it only. So the transcript of a file that has
grown begins with the bytes of the earlier one, and an import can be continued.

Claude Code writes one content block a line, answers of tools as user messages, and hangs answers to
parallel calls from their own call; here they follow one another. Lines of sub-agents, snapshots of
files and states of its interface are left out.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import Factory, define, field

from lamella.sessions.lines import decode_line, encode_line, strip_line
from lamella.sessions.migrate import CURRENT_VERSION
from lamella.text.days import parse_iso_ms

_STOP = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "toolUse", "max_tokens": "length"}
_NO_MODEL = "<synthetic>"  # Claude Code's name for messages of its own, such as errors

Fields = dict[str, Any]


@define(slots=True)
class Conversion:
    """A transcript in the making. `left_out` counts lines by the reason they are not in it."""

    session_id: str
    header: Fields | None = None
    title: str = ""
    entries: list[Fields] = Factory(list)
    left_out: Counter[str] = Factory(Counter)
    _places: dict[str, str | None] = field(factory=dict, init=False)  # Claude Code's uuid to the entry it led to
    _tools: dict[str, str] = field(factory=dict, init=False)  # call id to the tool's name
    _turn: set[str] = field(factory=set, init=False)  # entries since the last prompt, which form a chain
    _tokens: float = field(default=0, init=False)  # that the compaction to come was told of

    def add(self, line: bytes) -> None:
        """Take in one line; what cannot be read is counted and passed over."""
        if not strip_line(line):
            return
        try:
            value = decode_line(line)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            self.left_out["not a JSON object"] += 1
        elif value.get("isSidechain") is True:
            self.left_out["of a sub-agent"] += 1
        elif value.get("type") == "summary":
            self._add_title(value)
        elif isinstance(value.get("uuid"), str):
            self._add_line(value)
        else:
            self.left_out[f"of type {value.get('type')}"] += 1

    def data(self) -> bytes:
        """The transcript's bytes; empty when nothing was said."""
        if self.header is None:
            return b""
        return b"".join(map(encode_line, (self.header, *self.entries)))

    @property
    def updated_at(self) -> int:
        """Time of the last entry in Unix ms; 0 without one."""
        return (parse_iso_ms(self.entries[-1]["timestamp"]) or 0) if self.entries else 0

    # --- lines -----------------------------------------------------------------------------------

    def _add_line(self, value: Fields) -> None:
        uuid = value["uuid"]
        if uuid in self._places:
            self.left_out["there twice"] += 1
            return
        parts = list(self._parts(value))
        parent = self._parent(value, prompt=_is_prompt(value))
        if not parts:
            self._places[uuid] = parent  # what hangs below it hangs from its own parent
            return
        self._begin(value)
        for number, fields in enumerate(parts):
            entry_id = uuid if not number else f"{uuid}-{number}"
            parent = self._append(entry_id, parent, value, fields)
        self._places[uuid] = parent

    def _parts(self, value: Fields) -> Iterator[Fields]:
        """The entries that a line becomes, without what places them."""
        message, when = value.get("message"), parse_iso_ms(str(value.get("timestamp")))
        if value.get("subtype") == "compact_boundary":
            self._tokens = _number(value.get("compactMetadata"), "preTokens")
            return
        if not isinstance(message, Mapping) or value.get("type") not in ("user", "assistant"):
            self.left_out[f"of type {value.get('type')}"] += 1
            return
        if value["type"] == "assistant":
            yield {"type": "message", "message": self._assistant(message, value, when)}
        elif value.get("isCompactSummary") is True:
            yield {"type": "compaction", "summary": _text(message.get("content")), "tokensBefore": self._tokens}
        elif value.get("isMeta") is True:
            content = _text(message.get("content"))
            yield {"type": "custom_message", "customType": "claude-code.meta", "content": content, "display": False}
        else:
            yield from self._user(message.get("content"), when)

    def _user(self, content: Any, when: int | None) -> Iterator[Fields]:
        blocks = content if isinstance(content, list) else [{"type": "text", "text": str(content or "")}]
        for block in blocks:
            if isinstance(block, Mapping) and block.get("type") == "tool_result":
                yield {"type": "message", "message": self._result(block, when)}
        said = [shown for block in blocks if (shown := _block(block)) not in (None, _text_block(""))]
        if said:
            yield {"type": "message", "message": {"role": "user", "content": said, "timestamp": when}}

    def _result(self, block: Mapping[str, Any], when: int | None) -> Fields:
        call_id, content = str(block.get("tool_use_id") or ""), block.get("content")
        shown = [_block(b) for b in content] if isinstance(content, list) else [_text_block(content)]
        return {
            "role": "toolResult",
            "toolCallId": call_id,
            "toolName": self._tools.get(call_id, ""),
            "content": [b for b in shown if b is not None],
            "isError": block.get("is_error") is True,
            "timestamp": when,
        }

    def _assistant(self, message: Mapping[str, Any], value: Fields, when: int | None) -> Fields:
        content = message.get("content")
        blocks = [b for raw in (content if isinstance(content, list) else [_text_block(content)]) if (b := _block(raw))]
        for block in blocks:
            if block["type"] == "toolCall":
                self._tools[block["id"]] = block["name"]
        calls = any(block["type"] == "toolCall" for block in blocks)
        model = message.get("model")
        failed = value.get("isApiErrorMessage") is True
        reason = "toolUse" if calls else _STOP.get(str(message.get("stop_reason")), "stop")
        fields: Fields = {
            "role": "assistant",
            "content": blocks,
            "api": "anthropic-messages",
            "provider": "anthropic",
            "model": model if isinstance(model, str) and model != _NO_MODEL else "",
            "usage": _usage(message.get("usage")),
            "stopReason": "error" if failed else reason,
            "timestamp": when,
        }
        return {**fields, "errorMessage": _text(content)} if failed else fields

    def _add_title(self, value: Fields) -> None:
        """A summary that Claude Code made of a whole session: its name here."""
        title = " ".join(str(value.get("summary") or "").split())
        if not title or self.header is None:  # before anything was said there is nothing to hang it from
            self.title = title or self.title
            return
        self.title = title
        digest = hashlib.sha256(f"{len(self.entries)}:{title}".encode()).hexdigest()[:16]
        last = self.entries[-1]
        self._append(digest, last["id"], {"timestamp": last["timestamp"]}, {"type": "session_info", "name": title})

    # --- places ----------------------------------------------------------------------------------

    def _parent(self, value: Fields, *, prompt: bool) -> str | None:
        """The entry that a line hangs from.

        A prompt hangs where Claude Code hung it, so that a conversation that was taken back to an
        earlier place is a branch. What belongs to a turn follows the turn's last entry.
        """
        above = value.get("parentUuid") or value.get("logicalParentUuid")
        last = self.entries[-1]["id"] if self.entries else None
        if isinstance(above, str) and above not in self._places:
            return last  # its line is lost
        named = self._places[above] if isinstance(above, str) else None
        if prompt or last is None:
            return named
        return last if named in self._turn and last in self._turn else named

    def _append(self, entry_id: str, parent: str | None, value: Fields, fields: Fields) -> str:
        common = {"id": entry_id, "parentId": parent, "timestamp": str(value.get("timestamp") or "")}
        entry = {"type": fields["type"], **common, **{k: v for k, v in fields.items() if v is not None and k != "type"}}
        if _starts_turn(entry):
            self._turn.clear()
        self._turn.add(entry_id)
        self.entries.append(entry)
        return entry_id

    def _begin(self, value: Fields) -> None:
        if self.header is None:
            self.header = {
                "type": "session",
                "version": CURRENT_VERSION,
                "id": self.session_id,
                "timestamp": str(value.get("timestamp") or ""),
                "cwd": str(value.get("cwd") or ""),
            }


def _starts_turn(entry: Fields) -> bool:
    return bool(entry["type"] == "message" and entry["message"]["role"] == "user")


def _is_prompt(value: Fields) -> bool:
    """Whether a line is what a person said, and no tool's answer."""
    message = value.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    answers = isinstance(content, list) and any(
        isinstance(b, Mapping) and b.get("type") == "tool_result" for b in content
    )
    return value.get("type") == "user" and not answers


def _block(raw: Any) -> Fields | None:
    """A content block in lamella's shape; None for one that has no place there."""
    if not isinstance(raw, Mapping):
        return None
    match raw.get("type"):
        case "text":
            return _text_block(raw.get("text"))
        case "thinking":
            block = {"type": "thinking", "thinking": str(raw.get("thinking") or "")}
            return {**block, "thinkingSignature": raw["signature"]} if isinstance(raw.get("signature"), str) else block
        case "redacted_thinking":
            return {
                "type": "thinking",
                "thinking": "",
                "thinkingSignature": str(raw.get("data") or ""),
                "redacted": True,
            }
        case "tool_use":
            arguments = raw.get("input") if isinstance(raw.get("input"), Mapping) else {}
            return {"type": "toolCall", "id": str(raw.get("id")), "name": str(raw.get("name")), "arguments": arguments}
        case "image":
            source = raw.get("source")
            if isinstance(source, Mapping) and source.get("type") == "base64":
                return {"type": "image", "data": str(source.get("data")), "mimeType": str(source.get("media_type"))}
    return None


def _text_block(value: Any) -> Fields:
    return {"type": "text", "text": value if isinstance(value, str) else ""}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(b.get("text") or "") for b in blocks if isinstance(b, Mapping) and b.get("type") == "text")


def _number(value: Any, name: str) -> float:
    found = value.get(name) if isinstance(value, Mapping) else None
    return found if isinstance(found, (int, float)) and not isinstance(found, bool) else 0


def _usage(raw: Any) -> Fields | None:
    if not isinstance(raw, Mapping):
        return None
    names = (
        ("input", "input_tokens"),
        ("output", "output_tokens"),
        ("cacheRead", "cache_read_input_tokens"),
        ("cacheWrite", "cache_creation_input_tokens"),
    )
    counts = {ours: _number(raw, theirs) for ours, theirs in names}
    return {**counts, "totalTokens": sum(counts.values())}

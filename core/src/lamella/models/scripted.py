"""A model that plays prepared replies: for tests, examples and repeatable runs.

A script is a list of steps, one for each call, in Python or as a JSON file: a list, or an object
with `steps` and optionally `id` and `contextWindow`. A step is an object with any of

- `text`, or `content`: a list of Pi's blocks (text, thinking, toolCall)
- `usage`: token counts in Pi's form
- `stopReason`: default `toolUse` with a tool call, else `stop`
- `error`: the reply fails with this text after its content was streamed; `status` and
  `retryAfter` (seconds) say what a server would have said
- `throwBeforeStart`: the call fails with this text before anything is streamed
- `abortInBlock`: the stream is aborted when this block (from 0) has begun
- `delayMs`: milliseconds to wait first
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from attrs import frozen

from lamella.errors import ModelAborted, ModelError, ModelRejected, UsageError
from lamella.models.whole import stream_whole
from lamella.types.message_json import parse_block, parse_usage
from lamella.types.messages import (
    AssistantMessage,
    Block,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    Usage,
)
from lamella.types.model import Done, ModelRequest, StreamEvent

ABORTED = "Request was aborted."
STOP_REASONS = ("stop", "length", "toolUse", "error", "aborted")


@frozen(slots=True)
class Step:
    """One prepared reply; see the module for what the fields mean."""

    content: tuple[Block, ...] = ()
    usage: Usage = Usage()
    stop_reason: StopReason | None = None
    error: str | None = None
    status: int | None = None
    retry_after: float | None = None
    throw_before_start: str | None = None
    abort_in_block: int | None = None
    delay_ms: float = 0


StepLike: TypeAlias = Step | str | Mapping[str, Any]
# A step may also be worked out from the request when its turn comes.
ScriptEntry: TypeAlias = StepLike | Callable[[ModelRequest], StepLike]


class ScriptedModel:
    """Plays its steps in order, one for each call, and keeps the requests in `requests`.

    A call beyond the last step ends with an error.
    """

    def __init__(
        self,
        steps: Iterable[ScriptEntry],
        *,
        provider: str = "scripted",
        id: str = "script",
        api: str = "scripted",
        context_window: int = 128_000,
        max_output: int = 8_192,
        supports_images: bool = True,
    ) -> None:
        self.provider = provider
        self.id = id
        self.api = api
        self.context_window = context_window
        self.max_output = max_output
        self.supports_images = supports_images
        self.requests: list[ModelRequest] = []
        # Checked now, so that a mistake in a script shows before the run.
        self._steps = [s if callable(s) else to_step(s, f"script, step {n}") for n, s in enumerate(steps, 1)]

    @classmethod
    def from_file(cls, path: Path | str, **options: Any) -> ScriptedModel:
        """Read a script from a JSON file; `options` are those of the constructor.

        Raises `UsageError` that names the file, the step and what was expected.
        """
        raw = _load(Path(path))
        head = raw if isinstance(raw, Mapping) else {}
        steps = head.get("steps") if head else raw
        if not isinstance(steps, list):
            raise UsageError(f"{path}: expected a list of steps, or an object with `steps`")
        known = {"steps", "id", "contextWindow"}
        if unknown := sorted(head.keys() - known):
            raise UsageError(f"{path}: unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}")
        if "id" in head:
            options.setdefault("id", _checked(head, "id", str, str(path)))
        if "contextWindow" in head:
            options.setdefault("context_window", _checked(head, "contextWindow", int, str(path)))
        return cls([to_step(step, f"{path}, step {n}") for n, step in enumerate(steps, 1)], **options)

    @property
    def steps_left(self) -> int:
        return max(len(self._steps) - len(self.requests), 0)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.requests.append(request)
        number = len(self.requests)
        if number > len(self._steps):
            error = ModelRejected(f"script has no step {number}")
            yield Done(self._reply(Step(error=str(error)), error), error)
            return
        entry = self._steps[number - 1]
        step = to_step(entry(request), f"script, step {number}") if callable(entry) else entry
        if step.delay_ms:
            await asyncio.sleep(step.delay_ms / 1000)
        failure = _failure(step, self.provider)
        reply = self._reply(step, failure)
        if step.throw_before_start is not None:
            yield Done(reply, failure)
            return
        for event in stream_whole(reply, failure, cut_in_block=step.abort_in_block):
            yield event

    def _reply(self, step: Step, error: ModelError | None) -> AssistantMessage:
        stop: StopReason = step.stop_reason or _default_stop(step)
        if error is not None:
            stop = "aborted" if isinstance(error, ModelAborted) else "error"
        return AssistantMessage(
            content=() if step.throw_before_start is not None else step.content,
            provider=self.provider,
            model=self.id,
            api=self.api,
            usage=step.usage,
            stop_reason=stop,
            error_message=str(error) if error is not None else None,
        )


def _default_stop(step: Step) -> StopReason:
    return "toolUse" if any(isinstance(block, ToolCall) for block in step.content) else "stop"


def _failure(step: Step, provider: str) -> ModelError | None:
    if step.abort_in_block is not None or step.stop_reason == "aborted":
        return ModelAborted(step.error or ABORTED)
    text = step.error if step.throw_before_start is None else step.throw_before_start
    if text is None and step.stop_reason != "error":
        return None
    from lamella.models.classify import classify_error

    return classify_error(
        text or "the script says error", status=step.status, retry_after=step.retry_after, provider=provider
    )


# --- steps from JSON ---------------------------------------------------------------------------------


_KEYS: dict[str, type | tuple[type, ...]] = {
    "text": str,
    "content": list,
    "usage": Mapping,
    "stopReason": str,
    "error": str,
    "status": int,
    "retryAfter": (int, float),
    "throwBeforeStart": str,
    "abortInBlock": int,
    "delayMs": (int, float),
}
_TYPE_NAMES = {str: "text", list: "a list", Mapping: "an object", int: "a whole number", (int, float): "a number"}


def to_step(raw: StepLike, where: str) -> Step:
    """A step from its short forms: a text, or an object. Raises `UsageError` that begins with `where`."""
    if isinstance(raw, Step):
        return raw
    if isinstance(raw, str):
        return Step((TextBlock(raw),))
    if not isinstance(raw, Mapping):
        raise UsageError(f"{where}: expected a text or an object, got {type(raw).__name__}")
    for key in raw:
        if key not in _KEYS:
            raise UsageError(f"{where}: unknown key {key!r}; known are {', '.join(sorted(_KEYS))}")
        _checked(raw, key, _KEYS[key], where)
    stop = raw.get("stopReason")
    if stop is not None and stop not in STOP_REASONS:
        raise UsageError(f"{where}: stopReason {stop!r}; expected one of {', '.join(STOP_REASONS)}")
    content = _content(raw, where)
    abort = raw.get("abortInBlock")
    if abort is not None and not 0 <= abort < len(content):
        raise UsageError(f"{where}: abortInBlock {abort}; the step has {len(content)} blocks, counted from 0")
    return Step(
        content=content,
        usage=parse_usage(raw.get("usage")) or Usage(),
        stop_reason=stop,
        error=raw.get("error"),
        status=raw.get("status"),
        retry_after=raw.get("retryAfter"),
        throw_before_start=raw.get("throwBeforeStart"),
        abort_in_block=abort,
        delay_ms=raw.get("delayMs", 0),
    )


def _content(raw: Mapping[str, Any], where: str) -> tuple[Block, ...]:
    if "text" in raw and "content" in raw:
        raise UsageError(f"{where}: give text or content, not both")
    if "text" in raw:
        return (TextBlock(raw["text"]),)
    blocks = tuple(b if _is_reply_block(b) else parse_block(b) for b in raw.get("content", ()))
    for number, block in enumerate(blocks):
        if not _is_reply_block(block):
            raise UsageError(f"{where}: content[{number}] is no text, thinking or toolCall block")
    return blocks


def _is_reply_block(block: object) -> bool:
    return isinstance(block, (TextBlock, ThinkingBlock, ToolCall))


def _checked(raw: Mapping[str, Any], key: str, kind: type | tuple[type, ...], where: str) -> Any:
    value = raw[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise UsageError(f"{where}: {key} is {json.dumps(value, default=str)}; expected {_TYPE_NAMES[kind]}")
    return value


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}:{error.lineno}: not JSON: {error.msg}") from error

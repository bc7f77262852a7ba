"""What a run looks like to a person: streamed text on stdout, everything else on stderr."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from lamella.cli.common import Out
from lamella.text.width import clip, printable
from lamella.types import events as e
from lamella.types.messages import AssistantMessage, text_of
from lamella.types.results import ToolResult


class Renderer:
    """A listener for a session's events.

    `stream` prints text as it arrives; otherwise the caller prints the answer at the end.
    """

    def __init__(self, *, stream: bool, quiet: bool = False) -> None:
        self.stream = stream
        self.quiet = quiet
        self._printed = False

    def __call__(self, event: e.AgentEvent) -> None:
        match event:
            case e.MessageUpdate(delta=delta) if self.stream and delta.type == "text_delta":
                self._printed = True
                Out.write(delta.delta, newline=False)
            case e.MessageEnd(message=AssistantMessage()) if self._printed:
                self._printed = False
                Out.write("")
            case e.ToolExecutionStart():
                self._say(f"· {event.tool_name} {short_arguments(event.arguments)}")
            case e.ToolExecutionEnd(is_error=True):
                self._say(f"  {event.tool_name} failed: {clip(result_text(event.result), 100)}")
            case e.AutoCompactionStart():
                self._say(f"· compacting ({event.reason})")
            case e.AutoCompactionEnd() if event.error:
                self._say(f"  not compacted: {event.error}")
            case e.AutoCompactionEnd() if event.summary is not None:
                self._say(f"  compacted: about {event.tokens_before} tokens became {event.tokens_after}")
            case e.AutoRetryStart():
                seconds = event.delay_ms / 1000
                attempt = f"{event.attempt} of {event.max_attempts}"
                self._say(f"· {clip(event.error, 100)}; trying again in {seconds:g} s ({attempt})")
            case e.PluginFault():
                self._say(f"warning: plugin {event.plugin}, {event.hook}: {event.error}")
            case e.Notice():
                self._say(event.message)
            case _:
                pass

    def _say(self, text: str) -> None:
        if self.quiet and not text.startswith(("warning", "error")):
            return
        if self._printed:
            Out.write("")
            self._printed = False
        click.echo(click.style(printable(text), dim=True), err=True)


def short_arguments(arguments: Mapping[str, Any]) -> str:
    """Tool arguments on one short line."""
    shown = ", ".join(f"{k}={json.dumps(v, ensure_ascii=False)}" for k, v in arguments.items())
    return clip(shown, 100)


def result_text(result: ToolResult) -> str:
    return text_of(result.blocks, " ")

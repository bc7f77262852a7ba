"""A conversation as one HTML page that needs nothing else, and in which nothing that was said is markup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from lamella.cli.transcripts import message_text
from lamella.text.width import printable
from lamella.types.messages import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    blocks_of,
)

# The page may load nothing and run nothing, whatever its text says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem; }
article { border-left: 3px solid #999; padding-left: 1rem; margin: 1rem 0; }
article.user { border-color: #36c; } article.assistant { border-color: #393; } article.failed { border-color: #c33; }
h2 { font-size: .8rem; color: #666; margin: 0; text-transform: uppercase; }
.text, pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .25rem 0; }
pre, summary { font: 14px/1.4 ui-monospace, monospace; } img { max-width: 100%; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #ddd; } h2 { color: #999; } }
"""
_IMAGE_TYPES = re.compile(r"image/(?:png|jpeg|gif|webp)", re.ASCII)
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}", re.ASCII)


def html_page(title: str, messages: Iterable[Message]) -> str:
    """The page, as text."""
    articles = "\n".join(article for message in messages if (article := _article(message)))
    return (
        f'<!doctype html>\n<html>\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width">\n'
        f"<title>{_escaped(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<h1 dir="auto">{_escaped(title)}</h1>\n{articles}\n</body>\n</html>\n'
    )


def _article(message: Message) -> str:
    match message:
        case UserMessage():
            return _framed("user", "user", "".join(_blocks(message.content)))
        case AssistantMessage():
            failed = f"[{message.stop_reason}: {message.error_message}]" if message.failed else ""
            body = "".join(_blocks(message.content)) + (_text(failed) if failed else "")
            return _framed("assistant failed" if failed else "assistant", "assistant", body or _text("(nothing said)"))
        case ToolResultMessage():
            kind = "failed" if message.is_error else "result"
            body = "".join(_blocks(message.content))
            return _framed(f"tool {kind}", f"{message.tool_name} {kind}", _folded(kind, body))
        case _:
            text = message_text(message)
            return _framed("other", message.role, _text(text)) if text else ""


def _blocks(content: Any) -> Iterator[str]:
    for block in blocks_of(content):
        match block:
            case TextBlock():
                yield _text(block.text)
            case ThinkingBlock(redacted=False) if block.thinking.strip():
                yield _folded("thinking", _text(block.thinking))
            case ImageBlock():
                yield _image(block)
            case ToolCall():
                arguments = json.dumps(block.arguments, ensure_ascii=False, indent=2, default=str)
                yield _folded(f"call of {block.name}", f"<pre>{_escaped(arguments)}</pre>")
            case _:
                pass


def _framed(kind: str, speaker: str, body: str) -> str:
    return f'<article class="{_escaped(kind)}">\n<h2>{_escaped(speaker)}</h2>\n{body}</article>'


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{_escaped(title)}</summary>\n{body}</details>\n"


def _text(text: str) -> str:
    return f'<div class="text" dir="auto">{_escaped(text)}</div>\n'


def _image(block: ImageBlock) -> str:
    if _IMAGE_TYPES.fullmatch(block.mime_type) and _BASE64.fullmatch(block.data):
        return f'<img alt="" src="data:{block.mime_type};base64,{block.data}">\n'
    return _text(f"[image {block.mime_type}]")


def _escaped(text: str) -> str:
    return escape(printable(text))

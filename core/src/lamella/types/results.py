"""What a tool gives back."""

from __future__ import annotations

from typing import Any, TypeAlias

from attrs import frozen

from lamella.types.messages import Block, TextBlock

ToolContent: TypeAlias = str | tuple[Block, ...]


@frozen(slots=True)
class ToolResult:
    """What a tool gives back. `content` goes to the model, `details` only to programs."""

    content: ToolContent
    details: Any = None
    is_error: bool = False

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (TextBlock(self.content),) if isinstance(self.content, str) else self.content

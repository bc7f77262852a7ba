"""Changes to a history that leave what needs none as the very same object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import TypeAlias

from lamella.types.messages import Block, ModelMessage

History: TypeAlias = Sequence[ModelMessage]


def settled(before: History, after: Sequence[ModelMessage]) -> History:
    """`before` itself when `after` holds the very same messages, else `after` as a tuple."""
    same = len(before) == len(after) and all(map(is_, before, after))
    return before if same else tuple(after)


def each(messages: History, change: Callable[[ModelMessage], ModelMessage | None]) -> History:
    """Every message changed; None leaves one out."""
    return settled(messages, [m for m in map(change, messages) if m is not None])


def each_block(blocks: tuple[Block, ...], change: Callable[[Block], Block | None]) -> tuple[Block, ...]:
    """Every block changed; None leaves one out. The same tuple when nothing changes."""
    changed = [b for b in map(change, blocks) if b is not None]
    same = len(changed) == len(blocks) and all(map(is_, blocks, changed))
    return blocks if same else tuple(changed)

"""Running turns from the command line: interruption, time limit, images."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.errors import UsageError
from lamella.types.messages import ImageBlock

if TYPE_CHECKING:
    from lamella.session import Session

MAX_IMAGE_BYTES = 4_500_000


def load_images(paths: Sequence[Path]) -> tuple[ImageBlock, ...]:
    """Image files as blocks. Raises `UsageError` for anything whose content is not a png, jpg, gif or webp."""
    from lamella.tools.read import image_type

    images = []
    for path in paths:
        if not path.is_file():
            raise UsageError(f"{path}: no such file")
        size = path.stat().st_size
        if size > MAX_IMAGE_BYTES:
            raise UsageError(f"{path}: {size} bytes; images may have at most {MAX_IMAGE_BYTES}")
        data = path.read_bytes()
        kind = image_type(data)
        if kind is None:
            raise UsageError(f"{path}: expected a png, jpg, gif or webp image")
        images.append(ImageBlock(base64.b64encode(data).decode(), kind))
    return tuple(images)


@contextlib.asynccontextmanager
async def interruptible(session: Session, timeout: float | None = None) -> AsyncIterator[None]:
    """Ctrl-C, a termination signal or the time limit abort the turn; the transcript stays legal."""
    loop = asyncio.get_running_loop()
    handled = []
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, other threads
            loop.add_signal_handler(number, session.abort)
            handled.append(number)
    timer = loop.call_later(timeout, session.abort) if timeout else None
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
        for number in handled:
            loop.remove_signal_handler(number)

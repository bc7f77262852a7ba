"""Reports of changes in folders on systems of all kinds, by watchfiles. They come a little late, and
one may get lost while others are taken, so they say when to look at the files, and not when not to.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeAlias

from lamella_memory_core.following.folders import Root

_Stream: TypeAlias = Generator[set[tuple[Any, str]], None, None]


class Reports:
    """Follows folders. Raises what watchfiles raises."""

    exact = False

    def __init__(self, roots: Sequence[Root]) -> None:
        self._streams = [(root, _stream(root)) for root in roots]

    def changed(self) -> bool:
        """Whether something that counts has been reported since the last call."""
        taken = [(root, next(stream)) for root, stream in self._streams]
        return any(root.concerns(path) for root, reports in taken for _, path in reports)

    def close(self) -> None:
        for _, stream in self._streams:
            stream.close()


def _stream(root: Root) -> _Stream:
    """Sets of (kind, path), empty when nothing happened for a millisecond."""
    from watchfiles import watch

    stream = watch(
        root.path,
        watch_filter=None,
        debounce=1,  # debounced elsewhere
        step=1,
        rust_timeout=1,
        yield_on_timeout=True,
        recursive=root.deep,
        ignore_permission_denied=True,
    )
    next(stream)  # nothing is reported of what came before this
    return stream

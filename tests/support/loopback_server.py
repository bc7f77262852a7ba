"""A scripted HTTP server on the loopback: what the servers of the tests have in common."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Generic, Self, TypeVar

B = TypeVar("B")


class LoopbackServer(Generic[B]):
    """Serves until it is closed. The script holds behaviours for the requests to come."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._script: list[B] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Root address, without a slash at its end."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def script(self, behaviours: Iterable[B]) -> None:
        """Append behaviours for the requests to come."""
        with self._lock:
            self._script.extend(behaviours)

    def reset(self) -> None:
        """Forget the behaviours that no request has taken."""
        with self._lock:
            self._script.clear()

    def close(self) -> None:
        self._closed.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""Embedding providers on the loopback: real HTTP, every wire format, scripted faults, requests recorded.

    with EmbedServer(dimensions=8) as server:
        server.script([Fault(429, headers={"retry-after": "2"}), Cut()])
        ... point a provider's base_url at server.url ...
        server.requests[0].texts

A request takes the next behaviour; once the script is used up, all are answered well. A text's
vector is `vector_of(text, dimensions)`, so that a test can tell whose vector came back.
"""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, TypeAlias

from attrs import Factory, frozen
from loopback_server import LoopbackServer


def vector_of(text: str, dimensions: int) -> list[float]:
    """Numbers from -1 to 1 that follow from the text alone; not of unit length."""
    digest = hashlib.shake_256(text.encode()).digest(dimensions)
    return [(byte - 127.5) / 127.5 for byte in digest]


@frozen
class Request:
    """One request as it arrived; header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any
    texts: tuple[str, ...]


@frozen
class Fault:
    """An error status. A body that is no string is sent as JSON."""

    status: int
    body: Any = "the server says no"
    headers: Mapping[str, str] = Factory(dict)


@frozen
class Cut:
    """The connection ends in the middle of the answer."""


@frozen
class Hang:
    """No answer at all."""


@frozen
class Trickle:
    """A space now and then, for ever."""


@frozen
class Raw:
    """Status 200 with this body."""

    body: str


@frozen
class Vectors:
    """Status 200 with these vectors in the provider's own shape."""

    rows: Any


Behaviour: TypeAlias = Fault | Cut | Hang | Trickle | Raw | Vectors | None


class EmbedServer(LoopbackServer[Behaviour]):
    """The server.

    `refuse` may turn down a request that the script lets pass. Each request first passes the
    barrier `meet`, and lingers for some seconds.
    """

    def __init__(self, dimensions: int = 8) -> None:
        self.dimensions = dimensions
        self.requests: list[Request] = []
        self.most_at_once = 0
        self.refuse: Callable[[Request], Behaviour] = lambda _: None
        self.meet: threading.Barrier | None = None
        self.linger = 0.0
        self._at_once = 0
        super().__init__(_handler(self))

    def texts(self) -> list[str]:
        """All texts that arrived, in the order of the requests."""
        return [text for request in self.requests for text in request.texts]

    def take(self, request: Request) -> Behaviour:
        with self._lock:
            self.requests.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            scripted = self._script.pop(0) if self._script else None
        if self.meet is not None:
            self.meet.wait(10)
        self.wait_closed(self.linger)
        return scripted or self.refuse(request)

    def done(self) -> None:
        with self._lock:
            self._at_once -= 1

    def wait_closed(self, seconds: float | None = None) -> bool:
        return self._closed.wait(seconds)


def _texts(path: str, body: Any) -> list[str]:
    if path.endswith(":batchEmbedContents"):
        return [part["text"] for request in body["requests"] for part in request["content"]["parts"]]
    return list(body["input"])


def _answer(path: str, rows: Any) -> Any:
    if path.endswith(":batchEmbedContents"):
        return {"embeddings": [{"values": row} for row in rows]}
    if path.endswith("/api/embed"):
        return {"model": "m", "embeddings": rows}
    # The order of `data` is not promised; `index` is.
    items = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    return {"object": "list", "data": items[::-1], "usage": {"prompt_tokens": 1}}


def _handler(server: EmbedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            return

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.path, headers, body, tuple(_texts(self.path, body)))
            try:
                behaviour = server.take(request)
            finally:
                server.done()
            try:
                self._behave(behaviour, request)
            except (BrokenPipeError, ConnectionResetError):
                return  # the client gave up

        def _behave(self, behaviour: Behaviour, request: Request) -> None:
            match behaviour:
                case Fault():
                    text = behaviour.body if isinstance(behaviour.body, str) else json.dumps(behaviour.body)
                    self._send(behaviour.status, text, behaviour.headers)
                case Cut():
                    self._head(200, 1000, {})
                    self.wfile.write(b'{"data": [')
                    self.wfile.flush()
                    self.connection.shutdown(socket.SHUT_RDWR)
                case Hang():
                    server.wait_closed()
                case Trickle():
                    self._head(200, 100_000, {})
                    while not server.wait_closed(0.02):
                        self.wfile.write(b" ")
                        self.wfile.flush()
                case Raw():
                    self._send(200, behaviour.body, {})
                case Vectors():
                    self._send(200, json.dumps(_answer(request.path, behaviour.rows)), {})
                case None:
                    rows = [vector_of(text, server.dimensions) for text in request.texts]
                    self._send(200, json.dumps(_answer(request.path, rows)), {})

        def _send(self, status: int, text: str, headers: Mapping[str, str]) -> None:
            data = text.encode()
            self._head(status, len(data), headers)
            self.wfile.write(data)

        def _head(self, status: int, length: int, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(length))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

    return Handler

"""A model provider on the loopback: real HTTP, real streams, scripted behaviour, requests recorded.

    with ProviderServer() as server:
        server.script([Reply("Hello"), Failure(429, "slow down", headers={"retry-after": "2"})])
        ... point a provider's base_url at server.url ("/v1" for OpenAI's format) ...
        server.requests[0].body

Each POST takes the next behaviour; once the script is used up, requests fail with status 500 and
say so. A behaviour may be a function of the request.
"""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, TypeAlias

from attrs import frozen
from loopback_server import LoopbackServer
from provider_wires import Behaviour, Call, Failure, Reply, Tokens, Wire, wire_for

__all__ = ["Behaviour", "Call", "Failure", "ProviderServer", "Recorded", "Reply", "Tokens"]


@frozen
class Recorded:
    """One request as it arrived; header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any


Scripted: TypeAlias = Behaviour | Callable[[Recorded], Behaviour]


class ProviderServer(LoopbackServer[Scripted]):
    """The server. `disconnected` is set when a client goes away before its reply is whole."""

    def __init__(self) -> None:
        self.requests: list[Recorded] = []
        self.disconnected = threading.Event()
        super().__init__(_handler(self))

    def take(self, request: Recorded) -> Behaviour:
        """Record a request and give the behaviour that answers it."""
        with self._lock:
            self.requests.append(request)
            if not self._script:
                return Failure(500, "the script is used up")
            scripted = self._script.pop(0)
        return scripted(request) if callable(scripted) else scripted

    def hold(self, connection: socket.socket) -> None:
        """Wait until the client hangs up or the server closes."""
        while not self._closed.is_set():
            ready, _, _ = select.select([connection], [], [], 0.02)
            if ready and not connection.recv(1, socket.MSG_PEEK):
                self.disconnected.set()
                return


def _handler(server: ProviderServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            return

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length))
            headers = {name.lower(): value for name, value in self.headers.items()}
            behaviour = server.take(Recorded(self.path, headers, body))
            wire = wire_for(self.path)
            if wire is None:
                self._fail(Failure(404, body={"error": {"message": f"no such path: {self.path}"}}), None)
            elif isinstance(behaviour, Failure):
                self._fail(behaviour, wire)
            else:
                self._stream(behaviour, wire, body)

        def _fail(self, failure: Failure, wire: Wire | None) -> None:
            body = failure.body if failure.body is not None or wire is None else wire.error(failure)
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(failure.status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            for name, value in failure.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, reply: Reply, wire: Wire, body: Any) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            try:
                for count, event in enumerate(wire.events(reply, body)):
                    if count == reply.cut_after:
                        self._cut()
                        return
                    if count == reply.hold_after:
                        server.hold(self.connection)
                        self._cut()
                        return
                    if count == reply.fail_after and reply.failure is not None:
                        self._chunk(wire.stream_error(reply.failure))
                        break
                    self._chunk(event)
                self.wfile.write(b"0\r\n\r\n")
            except (BrokenPipeError, ConnectionResetError):
                server.disconnected.set()
                self.close_connection = True

        def _chunk(self, event: str) -> None:
            data = event.encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.flush()

        def _cut(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    return Handler

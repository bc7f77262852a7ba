"""Running over streamable HTTP, at the path `/mcp`: any number of clients."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import re
import signal
import socket
from collections.abc import Callable, Iterator, Sequence

import uvicorn
from attrs import frozen
from mcp.server.transport_security import TransportSecuritySettings

from lamella.errors import LamellaError, UsageError
from lamella.mcp.server import MemoryServer
from lamella.mcp.token import TokenGuard

PATH = "/mcp"
# How long requests may still take when the server ends; then their connections are cut.
GRACE_SECONDS = 3
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?")


@frozen(slots=True)
class Place:
    """Where to listen, what clients must show, and beside loopback names those that they may call the server by."""

    host: str = "127.0.0.1"
    port: int = 8177
    token: str = ""
    names: tuple[str, ...] = ()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def check_place(place: Place) -> None:
    """Raises `UsageError` for what is no name or address, and for a place that others can reach without a
    token, or by no name that is known."""
    _check_name(place.host, "--host")
    for name in place.names:
        _check_name(name, "--allow-host")
    if is_loopback(place.host):
        return
    if not place.token:
        raise UsageError(
            f"--host {place.host} can be reached from other machines: a token is needed",
            hint="Give one with --token-file or LAMELLA_MCP_TOKEN.",
        )
    if not place.names and _is_any(place.host):
        raise UsageError(
            f"--host {place.host} listens on all addresses: name the one that clients use",
            hint="--allow-host takes a name or address, such as notes.example.org.",
        )


def run_http(server: MemoryServer, place: Place, told: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or a termination signal. `told` gets the address once requests are answered."""
    with _listening(place) as listening:
        port = listening.getsockname()[1]
        app = server.mcp.streamable_http_app(streamable_http_path=PATH, transport_security=security_of(place))
        config = uvicorn.Config(
            TokenGuard(app, place.token) if place.token else app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        running = uvicorn.Server(config)
        with _stopped_by_signals(running):
            told(f"http://{_in_url(place.host)}:{port}{PATH}")
            running.run(sockets=[listening])
    server.work.finish(GRACE_SECONDS)


def security_of(place: Place) -> TransportSecuritySettings:
    """Only requests under known names are answered, so that no page in a browser reaches the server through a
    name of its own that leads here."""
    names = [*_LOOPBACK_NAMES, *(_in_url(name) for name in place.names)]
    if not _is_any(place.host):
        names.append(_in_url(place.host))
    # Clients write a name as it was given to them, or as browsers do.
    known = list(dict.fromkeys(form for name in names for form in (name, _as_sent(name))))
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[form for name in known for form in (name, f"{name}:*")],
        allowed_origins=[form for name in known for scheme in ("http", "https") for form in _origins(scheme, name)],
    )


def _origins(scheme: str, name: str) -> Sequence[str]:
    return f"{scheme}://{name}", f"{scheme}://{name}:*"


def _check_name(host: str, option: str) -> None:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        if not _NAME.fullmatch(_as_sent(host)):
            raise UsageError(
                f"{option} {host!r}: expected a name or an address, such as notes.example.org or 192.0.2.7, "
                "without scheme, port or path"
            ) from None


def _as_sent(host: str) -> str:
    """A host as browsers send it: in lower case, in the letters of the domain name system."""
    if host.isascii():
        return host.lower()
    try:
        return host.encode("idna").decode().lower()
    except UnicodeError:
        return host


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def _in_url(host: str) -> str:
    """A host as it stands in an address."""
    bare = host.strip("[]")
    return f"[{bare}]" if ":" in bare else bare


@contextlib.contextmanager
def _listening(place: Place) -> Iterator[socket.socket]:
    """A socket that listens. Raises `LamellaError` for a host that is unknown and a port that is taken."""
    where = f"--host {place.host} --port {place.port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            place.host.strip("[]"), place.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise UsageError(f"{where}: {error.strerror}") from error
    with socket.socket(family, kind, protocol) as listening:
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(128)
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            raise LamellaError(
                f"{where}: {error.strerror}", hint="--port 0 takes a free one." if taken else ""
            ) from error
        yield listening


@contextlib.contextmanager
def _stopped_by_signals(running: uvicorn.Server) -> Iterator[None]:
    """uvicorn listens for signals itself, but not before it has begun, and those that have ended it it raises
    once more for whoever listened before."""

    def stop(_number: int, _frame: object) -> None:
        running.should_exit = True

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

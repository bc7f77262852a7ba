"""Every error that lamella raises on purpose.

LamellaError
├── ConfigError (ValueError)            a setting is wrong; lists every problem at once
├── UsageError (ValueError)             a request that cannot be carried out as it was put
├── SessionError
│   ├── SessionNotFound (LookupError)   no such session key, id or file
│   ├── EntryNotFound (LookupError)     no such entry in a transcript
│   ├── TranscriptError (ValueError)    a file that is not a transcript, or cannot be continued
│   └── SessionLocked (TimeoutError)    another process holds the session
├── PluginError                         a plugin cannot be loaded or used
├── MissingExtra (ImportError)          an optional dependency is not installed
├── MemoryUnavailable, MemoryPathError (ValueError), MemoryConflict
├── ToolError                           a tool's answer to the model is an error result
└── ModelError
    ├── ContextOverflow                 the request does not fit the model's window
    ├── ModelRateLimited                slow down; `retry_after` in seconds when the server said so
    ├── ModelTransient                  network, overload, server error: worth another try
    ├── ModelAuthError                  key missing, wrong, or not allowed
    ├── ModelRejected                   the provider refused the request for another reason
    └── ModelAborted                    the caller cancelled

Messages are written for the person who reads them: what happened, where, and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import frozen


class LamellaError(Exception):
    """Root of lamella's errors. `hint` is one line that says what to do, or empty.

    `exit_code` is what the command line exits with when the error reaches it.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@frozen
class Problem:
    """One thing wrong with a configuration.

    `path` is the dotted key, `origin` the file (or environment variable) it came from.
    """

    path: str
    message: str
    origin: str = ""
    level: str = "error"

    def __str__(self) -> str:
        where = f"{self.origin}: " if self.origin else ""
        return f"{where}{self.path}: {self.message}" if self.path else f"{where}{self.message}"


class ConfigError(LamellaError, ValueError):
    """The configuration is wrong. `problems` holds every fault that was found, not only the first."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem], *, hint: str = "") -> None:
        super().__init__("\n".join(str(p) for p in problems), hint=hint)
        self.problems = tuple(problems)


class UsageError(LamellaError, ValueError):
    """What was asked for cannot be done as it was put."""

    exit_code = 2


class SessionError(LamellaError):
    """Something is wrong with a session or its transcript."""


class SessionNotFound(SessionError, LookupError):
    """No session with that key, id or path."""

    exit_code = 4


class EntryNotFound(SessionError, LookupError):
    """A transcript has no entry with that id."""

    exit_code = 4

    def __init__(self, entry_id: str, path: Path | str = "") -> None:
        where = f" in {path}" if path else ""
        super().__init__(f"entry {entry_id!r} not found{where}")
        self.entry_id = entry_id


class TranscriptError(SessionError, ValueError):
    """The file is not a transcript, or cannot be continued safely."""

    def __init__(self, path: Path | str, message: str, *, line: int | None = None, hint: str = "") -> None:
        where = f"{path}:{line}" if line else str(path)
        super().__init__(f"{where}: {message}", hint=hint)
        self.path = Path(path)
        self.line = line


class SessionLocked(SessionError, TimeoutError):
    """Another process is working on the session. `owner` describes it when it is known."""

    exit_code = 5

    def __init__(self, path: Path | str, timeout: float, owner: str = "") -> None:
        by = f" by {owner}" if owner else ""
        super().__init__(
            f"{path} is locked{by} (waited {timeout:g} s)",
            hint="Wait for the other process to finish, or use another session key.",
        )
        self.path = Path(path)
        self.timeout = timeout
        self.owner = owner


class PluginError(LamellaError):
    """A plugin cannot be loaded, configured or used."""


class MissingExtra(LamellaError, ImportError):
    """An optional dependency is not installed; the message holds the command that installs it."""

    exit_code = 3

    def __init__(self, what: str, distribution: str) -> None:
        super().__init__(f"{what} needs an optional package", hint=f"pip install '{distribution}'")
        self.distribution = distribution


class MemoryUnavailable(LamellaError):
    """No memory can answer: no plugin fills the slot, or its backend is broken."""

    exit_code = 3


class MemoryPathError(LamellaError, ValueError):
    """A path that is not a memory file, or lies outside the workspace."""


class MemoryConflict(LamellaError):
    """A memory file changed since it was read; nothing was written."""


class ToolError(LamellaError):
    """Raised by a tool: its message becomes an error result that the model sees."""


class ModelError(LamellaError):
    """A model call failed. `status` is the HTTP status when there was one."""

    exit_code = 6

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.retry_after = retry_after

    @property
    def retryable(self) -> bool:
        """True when the same request may succeed a little later."""
        return False


class ContextOverflow(ModelError):
    """The request is larger than the model's window.

    `tokens` is its size as far as the server told it. `certain` is False for a refusal that may be about
    bytes and not about tokens.
    """

    exit_code = 7

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        hint: str = "",
        tokens: int | None = None,
        certain: bool = True,
    ) -> None:
        super().__init__(message, status=status, hint=hint)
        self.tokens = tokens
        self.certain = certain


class ModelTransient(ModelError):
    """Network trouble, overload or a server error."""

    @property
    def retryable(self) -> bool:
        return True


class ModelRateLimited(ModelTransient):
    """Too many requests; `retry_after` is in seconds when the server said so."""


class ModelAuthError(ModelError):
    """The key is missing, wrong, or not allowed to use the model."""


class ModelRejected(ModelError):
    """The provider refused the request for a reason that a retry does not change."""


class ThinkingRejected(ModelRejected):
    """The provider refused the thinking of earlier replies that the request gave back. Without it, the
    request may succeed."""


class ModelAborted(ModelError):
    """The caller cancelled the call."""

    exit_code = 130

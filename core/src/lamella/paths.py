"""Where lamella keeps things: `~/.lamella`, or the folder in LAMELLA_HOME."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from lamella.errors import UsageError


@frozen(slots=True)
class Paths:
    """The state folder and what lies in it."""

    home: Path

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Paths:
        environ = os.environ if environ is None else environ
        configured = environ.get("LAMELLA_HOME", "").strip()
        return cls(expand(configured or "~/.lamella"))

    @property
    def config_file(self) -> Path:
        return self.home / "config.toml"

    @property
    def log_file(self) -> Path:
        return self.home / "logs" / "lamella.log"

    def agent_dir(self, agent_id: str) -> Path:
        return self.home / "agents" / agent_id

    def sessions_dir(self, agent_id: str, store: str = "") -> Path:
        """An agent's sessions folder; `store` is the setting `session.store`."""
        if store:
            return expand(store.replace("{agentId}", agent_id))
        return self.agent_dir(agent_id) / "sessions"

    def workspace(self, agent_id: str, configured: str = "") -> Path:
        """An agent's workspace folder."""
        if configured:
            return expand(configured)
        return self.home / ("workspace" if agent_id == "main" else f"workspace-{agent_id}")


def expand(text: str | Path) -> Path:
    """An absolute path, with a leading `~` expanded; symbolic links stay.

    Raises `UsageError` when nobody knows that home folder.
    """
    try:
        expanded = Path(text).expanduser()
    except RuntimeError:
        raise UsageError(f"{text}: the home folder is not known", hint="Set HOME, or LAMELLA_HOME.") from None
    return Path(os.path.abspath(expanded))  # noqa: PTH100 - resolve() would follow links

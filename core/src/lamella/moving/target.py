"""Where an import goes: lamella's state folder and configuration."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from lamella.config.load import Config, load_config
from lamella.paths import Paths, expand
from lamella.sessions.index import SessionIndex


@frozen(slots=True)
class Target:
    """lamella's folders, as the configuration has them."""

    paths: Paths
    config_file: Path
    config: Config

    @classmethod
    def open(cls, config: Path | None = None) -> Target:
        """Read the configuration. Raises `ConfigError`."""
        paths = Paths.from_environment()
        file = expand(config) if config is not None else paths.config_file
        return cls(paths, file, load_config(paths, file=file if config is not None else None))

    def sessions(self, agent_id: str) -> Path:
        """The folder of an agent's transcripts."""
        return self.paths.sessions_dir(agent_id, self.config.settings.session.store)

    def index(self, sessions: Path) -> SessionIndex:
        """sessions.json of a sessions folder."""
        return SessionIndex(sessions, timeout=self.config.settings.session.lock_timeout_seconds)

    def workspace(self, agent_id: str) -> Path:
        return self.paths.workspace(agent_id, self.config.agent(agent_id).workspace)

"""What a new plugin is called: in lamella, as a distribution, as a package, as a class."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection
from pathlib import Path

from attrs import frozen

from lamella.errors import UsageError

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_LONGEST = 24
# Names that stand for something else where a plugin or a backend is named.
_WORDS = {"none", "true", "false", "all", "core", "lamella", "memory"}


@frozen(slots=True)
class Names:
    """The names of one plugin; `word` is the name itself as a Python identifier.

    `class_name` is what names of classes begin with. None is called by it alone: it might be `Tool` or `Any`.
    """

    name: str
    plugin: str
    distribution: str
    package: str
    class_name: str
    word: str

    def as_tokens(self) -> dict[str, str]:
        return {
            "name": self.name,
            "plugin": self.plugin,
            "distribution": self.distribution,
            "package": self.package,
            "Class": self.class_name,
            "word": self.word,
        }


def names_of(name: str, kind: str, taken: Collection[str] | None = None) -> Names:
    """All names of a plugin. `taken`: names of plugins that there are; None: those that are installed.

    A backend NAME is the plugin NAME-backend of the distribution lamella-NAME-backend, which is what
    lamella tells people to install. Raises `UsageError` with the reason for a name that cannot be used.
    """
    if reason := _objection(name, kind):
        raise UsageError(f"{name!r} cannot be the name of a plugin: {reason}")
    plugin = f"{name}-backend" if kind == "backend" else name
    if plugin in (_installed() if taken is None else taken):
        raise UsageError(f"{plugin!r} cannot be the name of a plugin: there is one of this name")
    word = name.replace("-", "_")
    class_name = "".join(part.capitalize() for part in name.split("-"))
    return Names(name, plugin, f"lamella-{plugin}", f"lamella_{plugin.replace('-', '_')}", class_name, word)


def _objection(name: str, kind: str) -> str:
    """Why a name cannot be used; empty when it can."""
    if not _NAME.fullmatch(name):
        return "expected small letters, digits and hyphens between them, beginning with a letter"
    if len(name) > _LONGEST:
        return f"it has {len(name)} characters, at most {_LONGEST} are possible"
    if name.startswith("lamella-"):
        return f"leave out lamella-, the distribution gets it anyway; try {name.removeprefix('lamella-')!r}"
    if kind == "backend" and name.endswith("-backend"):
        return f"leave out -backend, the plugin gets it anyway; try {name.removesuffix('-backend')!r}"
    if name in _WORDS or keyword.iskeyword(name) or keyword.iskeyword(name.capitalize()):
        return "it has a meaning of its own"
    if kind == "backend" and name == "sqlite":
        return "it is the backend that comes with memory-core"
    if kind in ("tool", "model") and name.replace("-", "_") in _built_in(kind):
        return f"lamella has a {'tool' if kind == 'tool' else 'model provider'} of this name"
    if name.startswith("test"):
        return "pytest would take its class for tests"
    return ""


def _built_in(kind: str) -> set[str]:
    """Names of tools, or of model providers, that the core has."""
    if kind == "model":
        from lamella.models.registry import builtin_providers

        return set(builtin_providers())
    from lamella.sessions.store import SessionStore
    from lamella.tools.builtin import builtin_tools

    return {tool.name for tool in builtin_tools(Path(), exec_enabled=True, sessions=SessionStore(Path()))}


def _installed() -> set[str]:
    from lamella.context.builtin import builtin_plugins
    from lamella.plugins.catalog import entry_points

    return {*builtin_plugins(), *(entry.name for entry in entry_points())}

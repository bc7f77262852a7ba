"""The reference names everything that the code has: hooks, settings, commands, variables, errors."""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Iterator
from typing import Any

import attrs
import click
import pytest
from pages import ROOT, page, rows, sections

import lamella.errors
from lamella.cli.main import cli
from lamella.config.schema import Settings
from lamella.context.builtin import builtin_plugins
from lamella.context.builtin.history_limit import ChannelLimits
from lamella.errors import LamellaError
from lamella.models.registry import builtin_providers
from lamella.plugins import hookspecs
from lamella.plugins.hooks import DEFAULT_TIMEOUT, TIMEOUTS
from lamella.plugins.implementations import KNOWN_HOOKS
from lamella.types import hooks as h
from lamella.types.host import Host, SilentTurn, TurnInfo
from lamella.types.memory import BackendRegistration, EmbedderRegistration
from lamella.types.model import ModelProvider
from lamella.types.model_settings import ModelOverrides, ProviderSettings
from lamella_compaction_safeguard.config import Config as SafeguardConfig
from lamella_context_pruning.config import Config as ContextPruningConfig
from lamella_embedders.config import Config as EmbeddersConfig
from lamella_embedders.config import LocalSettings, RemoteSettings, SentenceTransformersSettings
from lamella_memory_core.config import Config as MemoryCoreConfig
from lamella_memory_lancedb.config import Config as MemoryLanceDBConfig
from lamella_memory_lancedb.notes.config import Config as LanceDBBackendConfig
from lamella_qmd_backend.config import Config as QmdBackendConfig
from lamella_session_memory.config import Config as SessionMemoryConfig

HOOKS = sections(page("hooks.md"))
RECORDS = (BackendRegistration, EmbedderRegistration, ModelProvider)


# --- hooks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(KNOWN_HOOKS))
def test_every_hook_has_its_exact_parameters(name: str) -> None:
    parameters = ", ".join(inspect.signature(getattr(hookspecs, name)).parameters)
    assert f"`{name}({parameters})`" in HOOKS


@pytest.mark.parametrize("name", sorted(KNOWN_HOOKS))
def test_every_hook_tells_fields_result_and_time_limit(name: str) -> None:
    (text,) = (body for title, body in HOOKS.items() if title.startswith(f"`{name}("))
    hints = typing.get_type_hints(getattr(hookspecs, name))
    for kind in hints.values():
        for record in records(kind):
            assert f"`{record.__name__}`" in text
            missing = [a.name for a in attrs.fields(record) if f"`{a.name}`" not in text]
            assert not missing, f"{record.__name__}: {missing}"
    assert f"limit: {TIMEOUTS.get(name, DEFAULT_TIMEOUT):g} s" in " ".join(text.split())


def records(kind: Any) -> Iterator[type[Any]]:
    """The classes of lamella's hook records within a type."""
    if isinstance(kind, type) and attrs.has(kind) and (kind.__module__ == h.__name__ or kind in RECORDS):
        yield kind
    for argument in typing.get_args(kind):
        yield from records(argument)


def test_no_hook_is_documented_that_does_not_exist() -> None:
    named = {m[1] for title in HOOKS if (m := re.fullmatch(r"`(\w+)\(.*\)`", title))}
    assert named == KNOWN_HOOKS


def test_the_preparation_of_a_compaction_is_documented() -> None:
    (text,) = (body for title, body in HOOKS.items() if title.startswith("`on_compaction("))
    assert not [a.name for a in attrs.fields(h.Preparation) if f"`{a.name}`" not in text]


def test_the_host_is_documented() -> None:
    text = HOOKS["The host"]
    members = [n for n in vars(Host) if not n.startswith("_")]
    assert not [n for n in members if not re.search(rf"`(await )?{n}[`(]", text)]
    fields = [a.name for kind in (TurnInfo, SilentTurn) for a in attrs.fields(kind)]
    assert not [n for n in fields if f"`{n}`" not in text]
    for name in members:
        function = getattr(Host, name)
        if inspect.isfunction(function):
            parameters = [p for p in inspect.signature(function).parameters if p != "self"]
            (shown,) = re.findall(rf"`(?:await )?{name}\((.*?)\)`", text)
            assert [p.strip("* ") for p in shown.split(",") if p.strip("* ")] == parameters, name


# --- settings ---------------------------------------------------------------------------------------------


def settings(cls: Any, path: str = "") -> Iterator[tuple[str, Any, str]]:
    """(key, default, help) of every setting of a class."""
    for attribute in attrs.fields(cls):
        key = f"{path}.{attribute.name}" if path else attribute.name
        default = attribute.default
        default = default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]
        if attrs.has(type(default)):
            yield from settings(type(default), key)
        else:
            yield key, list(default) if isinstance(default, tuple) else default, attribute.metadata.get("help", "")


OWN_KEYS = page("configuration.md").partition("## Coming from OpenClaw")[0]
ALL_SETTINGS = [
    *settings(Settings),
    *settings(ProviderSettings, "models.providers.NAME"),
    *settings(ModelOverrides, "models.providers.NAME.models.MODEL"),
    *settings(MemoryCoreConfig, "plugins.config.memory-core"),
    *settings(SafeguardConfig, "plugins.config.compaction-safeguard"),
    *settings(ContextPruningConfig, "plugins.config.context-pruning"),
    *settings(MemoryLanceDBConfig, "plugins.config.memory-lancedb"),
    *settings(LanceDBBackendConfig, "plugins.config.lancedb-backend"),
    *settings(SessionMemoryConfig, "plugins.config.session-memory"),
    *settings(QmdBackendConfig, "plugins.config.qmd-backend"),
    *settings(ChannelLimits, "plugins.config.history-limit.channels.CHANNEL"),
    *settings(EmbeddersConfig, "plugins.config.embedders"),
    *settings(RemoteSettings, "plugins.config.embedders.REMOTE"),
    *settings(LocalSettings, "plugins.config.embedders.LOCAL"),
    *settings(SentenceTransformersSettings, "plugins.config.embedders.sentence_transformers"),
    *(s for name, plugin in builtin_plugins().items() for s in settings(plugin.Config, f"plugins.config.{name}")),
]


@pytest.mark.parametrize(("key", "default", "help_text"), ALL_SETTINGS, ids=[s[0] for s in ALL_SETTINGS])
def test_every_setting_is_documented_with_its_default(key: str, default: Any, help_text: str) -> None:
    _, shown, meaning = rows(OWN_KEYS)[key]
    assert shown == ("unset" if default is None else f"`{json.dumps(default)}`")
    assert meaning.replace("`", "").startswith(help_text)


def test_no_setting_is_documented_that_does_not_exist() -> None:
    assert rows(OWN_KEYS).keys() == {key for key, _, _ in ALL_SETTINGS}


def test_keys_of_openclaw_lead_to_keys_that_exist() -> None:
    table = sections(page("configuration.md"))["Coming from OpenClaw"]
    keys = {key for key, _, _ in ALL_SETTINGS}
    for cells in rows(table).values():
        named = re.findall(r"`([^`]+)`", cells[2])
        assert named or cells[2] == "none"
        assert not [k for k in named if k not in keys and not k.startswith("plugins.config.")]


# Empty settings that stand for something, and how the table says it.
STANDS_FOR = {
    "agent.workspace": "`~/.lamella/workspace`",
    "agent.timezone": "the system's",
    "session.store": "per agent",
}


def in_a_table(key: str, default: Any) -> str:
    if default in ("", [], {}):
        return STANDS_FOR.get(key, "empty")
    if default is None:
        return "unset"
    if isinstance(default, list):
        return " and ".join(map(str, default))
    if isinstance(default, float):
        return f"{default:g}"
    return default if isinstance(default, str) else json.dumps(default)


def test_defaults_of_openclaw_are_kept_or_the_difference_is_explained() -> None:
    defaults = {key: in_a_table(key, default) for key, default, _ in ALL_SETTINGS}
    for cells in rows(sections(page("configuration.md"))["Coming from OpenClaw"]).values():
        there, names, here, why = cells[1:5]
        for key in re.findall(r"`([^`]+)`", names):
            if key in defaults:  # a section of any plugin has no default of its own
                assert re.split(r", | \(", here)[0] == defaults[key], key
        assert why or not there or there in (here, "the host's", "unset"), names


# --- command line ------------------------------------------------------------------------------------------


def commands(command: click.Command = cli, path: tuple[str, ...] = ("lamella",)) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group) or (command.invoke_without_command and command is not cli):
        yield " ".join(path), command
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(click.Context(command)):
        below = command.get_command(click.Context(command), name)
        assert below is not None
        yield from commands(below, (*path, name))


COMMANDS = dict(commands())
CLI = sections(page("cli.md"))
COMMON = CLI["Options of agent commands"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_with_its_options(name: str) -> None:
    text, command = CLI[f"`{name}`"], COMMANDS[name]
    assert " ".join((command.help or "").split("\n\n")[0].split()) in " ".join(text.split())
    shared = "(#options-of-agent-commands)" in text
    for option in command.params:
        if not isinstance(option, click.Option):
            assert (option.metavar or str(option.name).upper()) in text
            continue
        for spelling in (*option.opts, *option.secondary_opts):
            own = f"`{spelling}`" in text
            assert own or (shared and f"`{spelling}`" in COMMON), spelling
        if isinstance(option.type, click.Choice):
            assert all(f"`{choice}`" in text for choice in option.type.choices)


def test_no_command_or_option_is_documented_that_does_not_exist() -> None:
    assert {title.strip("`") for title in CLI if title.startswith("`lamella")} == COMMANDS.keys()
    for name, command in COMMANDS.items():
        known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
        for cells in rows(CLI[f"`{name}`"]).values():
            assert set(re.findall(r"`(-[^`]+)`", cells[0])) <= known, name


def test_slash_commands_are_documented() -> None:
    from lamella.cli.commands import BUILT_IN

    assert not [c for c in BUILT_IN if c != "help" and f"`/{c}" not in CLI["`lamella chat`"]]


# --- environment, errors, providers --------------------------------------------------------------------------


def test_every_environment_variable_is_documented() -> None:
    sources = [ROOT / "dev.py", *ROOT.glob("core/src/**/*.py"), *ROOT.glob("plugins/*/src/**/*.py")]
    used = {v for s in sources for v in re.findall(r"LAMELLA_[A-Z_]*[A-Z]", s.read_text(encoding="utf-8"))}
    assert rows(page("environment.md")).keys() == used


ERRORS = [c for c in vars(lamella.errors).values() if isinstance(c, type) and issubclass(c, LamellaError)]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: e.__name__)
def test_every_error_is_documented_with_its_exit_code(error: type[LamellaError]) -> None:
    _, builtin, code, _, _ = rows(page("errors.md"))[error.__name__]
    assert code == str(error.exit_code)
    bases = {b.__name__ for b in error.__bases__ if b.__module__ == "builtins"}
    assert set(re.findall(r"`(\w+)`", builtin)) == bases


@pytest.mark.parametrize("name", ["cli.md", "errors.md"])
def test_every_exit_code_is_documented(name: str) -> None:
    table = sections(page(name))["Exit codes"]
    shown = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    assert shown == {0, 130, *(e.exit_code for e in ERRORS)}


def test_every_provider_is_documented() -> None:
    text = (ROOT / "docs/how-to/use-a-provider.md").read_text(encoding="utf-8")
    table = rows(sections(text)["Install and set a key"])
    providers = builtin_providers()
    assert table.keys() == providers.keys()
    for name, provider in providers.items():
        _, extra, keys, default = table[name]
        assert set(re.findall(r"`(\w+)`", keys)) == set(provider.key_env)
        assert (provider.extra or "none") == extra.strip("`")
        assert not provider.default_model or f"`{provider.default_model}`" == default

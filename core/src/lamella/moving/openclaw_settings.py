"""openclaw.json as settings of lamella: of both generations, 2026.3 and 2026.9.

A key without a counterpart is told with the reason; secrets are never copied.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lamella.moving.foreign import leaves
from lamella.moving.openclaw_rules import PROVIDERS, RULES, VARIABLE, NoCounterpart, variable_name
from lamella.moving.report import Item
from lamella.moving.settings import Setting
from lamella.sessions.keys import DEFAULT_AGENT, slug_agent_id

_SECRET = re.compile(r"(api|auth|access|private)_?key|token$|secret|password", re.IGNORECASE)
_OLD_SEARCH = ("agents", "defaults", "memorySearch")
_SEARCH = ("memory", "search")
# Parts of memory search that have a switch there, and here are on when their number is set: the number, its default.
_SWITCHED = {"mmr": ("lambda", 0.7), "temporalDecay": ("halfLifeDays", 30)}

# The import itself sees to these.
_HANDLED = (
    "agents.defaults.workspace",
    "agents.list.*.workspace",
    "agents.list.*.id",
    "agents.list.*.default",
    "session.store",
)
_REASONS = (
    ("channels", "lamella has no messaging channels"),
    ("gateway", "lamella has no gateway"),
    ("auth", "keys come from environment variables"),
    ("env", "set variables where lamella is started"),
    ("plugins", "plugins have other names and settings here"),
    ("hooks", "hooks are Python plugins here"),
    ("meta", "OpenClaw's own record"),
    ("wizard", "OpenClaw's own record"),
    ("$include", "included files are not followed; import them by hand"),
)


def convert_settings(config: Mapping[str, Any], providers: Collection[str]) -> tuple[list[Setting], list[Item]]:
    """What can be set here, and what cannot, by its key. `providers`: the model providers that lamella knows."""
    known = {*providers, *_reachable(config)}
    settings: list[Setting] = []
    left: list[Item] = []
    for path, value in leaves(_normal(config)):
        if any(_match(pattern, path) is not None for pattern in _HANDLED):
            continue
        name = _shown(config, path)
        try:
            setting = _setting(name, path, value)
        except ValueError as error:
            left.append(Item("setting", name, "", "left_out", str(error)))
            continue
        if setting is None:
            continue
        if (provider := _provider_of(setting)) and provider not in known:
            left.append(Item("setting", name, "", "left_out", f"lamella does not know the provider {provider!r}"))
        else:
            settings.append(setting)
    counting = {setting.ours: setting for setting in settings}  # the later ones are the more special
    left += [
        Item("setting", s.theirs, "", "left_out", f"{counting[s.ours].theirs} counts")
        for s in settings
        if counting[s.ours] is not s
    ]
    return list(counting.values()), left


def _reachable(config: Mapping[str, Any]) -> Iterator[str]:
    """Providers that the configuration tells the address of."""
    for name, section in _table(_at(config, ("models", "providers"))).items():
        if _table(section).get("baseUrl"):
            yield PROVIDERS.get(name, name)


def _provider_of(setting: Setting) -> str:
    """The model provider that a setting is about; empty when it is about none."""
    if setting.ours[:2] == ("models", "providers"):
        return setting.ours[2]
    return str(setting.value).partition("/")[0] if setting.ours[-1] == "model" else ""


def _shown(config: Mapping[str, Any], path: tuple[str, ...]) -> str:
    """A key as it stands in the file."""
    if path[:2] == _SEARCH and isinstance(_at(config, _OLD_SEARCH), Mapping):
        path = (*_OLD_SEARCH, *path[2:])
    return ".".join(path)


def _setting(name: str, path: tuple[str, ...], value: Any) -> Setting | None:
    """A leaf as a setting; None where lamella does so anyway, and for null, which sets nothing.

    Raises `ValueError` with the reason against it.
    """
    for rule in RULES:
        captured = _match(rule.theirs, path)
        if captured is None:
            continue
        if isinstance(value, str) and VARIABLE.search(value) and rule.convert is not variable_name:
            raise NoCounterpart("holds a variable; set it by hand")
        converted = rule.convert(value)
        return None if converted is None else Setting(name, _fill(rule.ours, captured), converted)
    if _SECRET.search(path[-1]):
        raise NoCounterpart("a secret; keep it in an environment variable")
    raise NoCounterpart(next((why for top, why in _REASONS if path[0] == top), "has no counterpart"))


def _match(pattern: str, path: tuple[str, ...]) -> tuple[str, ...] | None:
    """The parts that stand for the stars of a pattern; None when it does not fit."""
    parts = pattern.split(".")
    if len(parts) != len(path) or any(p not in ("*", q) for p, q in zip(parts, path, strict=True)):
        return None
    return tuple(q for p, q in zip(parts, path, strict=True) if p == "*")


def _fill(pattern: str, captured: Iterable[str]) -> tuple[str, ...]:
    rest = iter(captured)
    filled = tuple(next(rest) if part == "*" else part for part in pattern.split("."))
    if filled[0] == "agents":
        return (*agent_section(slug_agent_id(filled[1])), *filled[2:])
    if filled[:2] == ("models", "providers"):
        return (*filled[:2], PROVIDERS.get(filled[2], filled[2]), *filled[3:])
    return filled


def agent_section(agent_id: str) -> tuple[str, ...]:
    """Where an agent's own settings are here. The main agent's are those of all: a section of its own would
    hide the workspace that may be set there."""
    return ("agent",) if agent_id == DEFAULT_AGENT else ("agents", agent_id)


def _at(value: Any, path: Iterable[str]) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


# --- both generations in one shape --------------------------------------------------------------------------


def _normal(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with agents by id, models by name, and memory search where 2026.9 has it."""
    normal = dict(config)
    agents = _table(normal.get("agents"))
    defaults = _table(agents.get("defaults"))
    search = defaults.pop("memorySearch", None)
    listed = {slug_agent_id(i): _table(section) for i, section in agent_sections(config)}
    if agents:
        rest = {k: v for k, v in agents.items() if k not in ("list", "entries", "defaults")}
        normal["agents"] = {
            **rest,
            **({"defaults": defaults} if defaults else {}),
            **({"list": listed} if listed else {}),
        }
    if isinstance(search, Mapping):
        memory = _table(normal.get("memory"))
        normal["memory"] = {**memory, "search": {**search, **_table(memory.get("search"))}}
    hybrid = _at(normal, (*_SEARCH, "query", "hybrid"))
    if isinstance(hybrid, Mapping):
        normal = _put(normal, (*_SEARCH, "query", "hybrid"), _switches(hybrid))
    session = _table(normal.get("session"))
    if "idleMinutes" in session and not {"reset", "resetByType"} & session.keys():  # alone, it is a policy
        normal["session"] = {**session, "reset": {"mode": "idle"}}
    providers = _table(_table(normal.get("models")).get("providers"))
    if providers:
        normal["models"] = {
            **_table(normal.get("models")),
            "providers": {n: _provider(p) for n, p in providers.items()},
        }
    return normal


def _switches(hybrid: Mapping[str, Any]) -> dict[str, Any]:
    """The section with the numbers of what is on, and nothing of what is off."""
    found = dict(hybrid)
    for name, (number, default) in _SWITCHED.items():
        part = _table(found.pop(name, None))
        if part.get("enabled") is True:
            found[name] = {number: part.get(number, default)}
    return found


def _put(value: Mapping[str, Any], path: tuple[str, ...], new: Any) -> dict[str, Any]:
    """A copy with one part replaced."""
    below = new if len(path) == 1 else _put(_table(value.get(path[0])), path[1:], new)
    return {**value, path[0]: below}


def _provider(section: Any) -> Any:
    models = section.get("models") if isinstance(section, Mapping) else None
    if not isinstance(models, list):
        return section
    return {
        **section,
        "models": {str(m["id"]): {k: v for k, v in m.items() if k != "id"} for m in models if "id" in _table(m)},
    }


def agent_sections(config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(id, section) of every agent that is named: `agents.list` of 2026.3, `agents.entries` of 2026.9."""
    agents = _table(config.get("agents"))
    listed = agents.get("list")
    for section in listed if isinstance(listed, list) else ():
        if isinstance(section, Mapping):
            yield str(section.get("id") or DEFAULT_AGENT), section
    for name, section in _table(agents.get("entries")).items():
        yield str(name), _table(section)


def workspace_of(config: Mapping[str, Any], agent_id: str) -> str:
    """The workspace that is configured for an agent; empty when none is."""
    own = next((s.get("workspace") for i, s in agent_sections(config) if slug_agent_id(i) == agent_id), None)
    if own is None and agent_id == DEFAULT_AGENT:
        own = _at(config, ("agents", "defaults", "workspace"))
    return own if isinstance(own, str) else ""


def store_folder(config: Mapping[str, Any]) -> Path | None:
    """The folder of a configured `session.store`; None when there is none, or its file has another name."""
    store = _at(config, ("session", "store"))
    if not isinstance(store, str) or not store.endswith("/sessions.json"):
        return None
    return Path(store).parent


def _table(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}

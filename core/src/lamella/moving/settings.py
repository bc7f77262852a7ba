"""Taking settings over into config.toml. What is set there already stays."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from lamella.config.edit import KeyPath, set_values
from lamella.config.load import read_toml
from lamella.config.schema import Settings
from lamella.config.structure import describe, structure
from lamella.moving.report import Item


@frozen(slots=True)
class Setting:
    """A setting to take over: the other program's key, lamella's, and the value it gets."""

    theirs: str
    ours: KeyPath
    value: Any


def plan_settings(file: Path, settings: Sequence[Setting]) -> tuple[dict[KeyPath, Any], list[Item]]:
    """What is to be set in a config file, and what becomes of each setting. Raises `ConfigError`."""
    current = _leaves(read_toml(file)) if file.exists() else {}
    values: dict[KeyPath, Any] = {}
    items = []
    for setting in settings:
        item = _item(setting, {**current, **values})
        items.append(item)
        if item.action == "add":
            values[setting.ours] = setting.value
    return values, items


def write_settings(file: Path, values: Mapping[KeyPath, Any]) -> None:
    """Set them; comments and order of the file stay."""
    if values:
        set_values(file, values)


def _item(setting: Setting, known: Mapping[KeyPath, Any]) -> Item:
    name = ".".join(setting.ours)
    if setting.ours in known:
        same = known[setting.ours] == setting.value
        reason = "" if same else f"is {describe(known[setting.ours])} here, {describe(setting.value)} there"
        return Item("setting", setting.theirs, name, "same" if same else "kept", reason)
    problem = _problem(setting)
    if problem:
        return Item("setting", setting.theirs, "", "left_out", problem)
    return Item("setting", setting.theirs, name, "add", describe(setting.value))


def _problem(setting: Setting) -> str:
    """Why a value would be wrong here; empty when it would not."""
    data: Any = setting.value
    for part in reversed(setting.ours):
        data = {part: data}
    _, problems = structure(Settings, data)
    if problems:
        return problems[0].message
    return "" if _fits_toml(data) else "TOML has no such value"


def _fits_toml(data: Mapping[str, Any]) -> bool:
    """Whether TOML can hold the data: it has no null, and its keys take no control characters."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomllib.loads(tomlkit.dumps(data)) == data
    except (TOMLKitError, TypeError, ValueError):
        return False


def _leaves(data: Mapping[str, Any], above: KeyPath = ()) -> dict[KeyPath, Any]:
    found: dict[KeyPath, Any] = {}
    for key, value in data.items():
        path = (*above, key)
        found.update(_leaves(value, path) if isinstance(value, Mapping) else {path: value})
    return found

"""Changing config.toml: comments and order stay, two writers lose nothing, the file is never half."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import filelock

from lamella.config.schema import Settings
from lamella.config.structure import structure
from lamella.errors import ConfigError, Problem, UsageError
from lamella.text.files import BOM, write_atomic

# A key as its parts: names of channels and the like may hold dots.
KeyPath: TypeAlias = tuple[str, ...]


def parse_value(text: str) -> Any:
    """A value from the command line: TOML where it is TOML (`12`, `true`, `["a"]`), else a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def set_value(file: Path, key: str, value: Any) -> None:
    """Set a dotted key. Raises `ConfigError` when the result would not be valid; then nothing changes."""
    set_values(file, {_parts(key): value})


def set_values(file: Path, values: Mapping[KeyPath, Any]) -> None:
    """Set several keys, each given as its parts, in one step. Raises as `set_value`."""

    def change(document: Any) -> bool:
        for path, value in values.items():
            _table(document, path, file, make=True)[path[-1]] = value
        return bool(values)

    _edit(file, [".".join(path) for path in values], change)


def unset_value(file: Path, key: str) -> bool:
    """Remove a dotted key; False when it was not there."""
    path = _parts(key)

    def change(document: Any) -> bool:
        table = _table(document, path, file, make=False)
        if table is None or path[-1] not in table:
            return False
        del table[path[-1]]
        return True

    return _edit(file, [key], change)


def _parts(key: str) -> KeyPath:
    parts = tuple(key.split("."))
    if not all(parts):
        raise UsageError(f"config key {key!r}: expected a dotted key such as compaction.reserve_tokens")
    return parts


def _table(document: Any, path: KeyPath, file: Path, *, make: bool) -> Any:
    """The table that holds a key; None when there is none and none is to be made."""
    import tomlkit

    table = document
    for part in path[:-1]:
        if part not in table:
            if not make:
                return None
            table[part] = tomlkit.table()
        table = table[part]
        if not hasattr(table, "keys"):
            raise UsageError(f"config key {'.'.join(path)!r}: {part!r} is a value, not a table, in {file}")
    return table


def _edit(file: Path, keys: Sequence[str], change: Callable[[Any], bool]) -> bool:
    """Change the file's document under its lock; nothing is written when `change` says that nothing changed."""
    import tomlkit
    from tomlkit.exceptions import ParseError

    file.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(file.parent / f".{file.name}.lock", timeout=30)
    try:
        with lock:
            text = file.read_bytes().removeprefix(BOM).decode("utf-8") if file.exists() else ""
            try:
                document = tomlkit.parse(text)
            except ParseError as error:
                raise ConfigError([Problem("", f"is not valid TOML: {error}", str(file))]) from error
            if not change(document):
                return False
            changed = tomlkit.dumps(document)
            for key in keys:
                _require_valid(tomllib.loads(changed), key, file)
            write_atomic(file, changed.encode("utf-8"), mode=0o600)
            return True
    except filelock.Timeout:
        raise UsageError(f"{file} is being changed by another process; try again") from None


def _require_valid(data: dict[str, Any], key: str, file: Path) -> None:
    """Refuse a change whose own key is wrong; other faults in the file stay as they were."""
    _, problems = structure(Settings, data)
    mine = [p for p in problems if p.path == key or p.path.startswith(f"{key}.") or key.startswith(f"{p.path}.")]
    mine += [p for p in problems if p.path.startswith(f"{key}[")]
    if mine:
        raise ConfigError([Problem(p.path, p.message, str(file)) for p in mine], hint="Nothing was changed.")

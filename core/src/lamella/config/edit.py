"""Changing config.toml: comments and order stay, two writers lose nothing, the file is never half."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import filelock

from lamella.config.schema import Settings
from lamella.config.structure import structure
from lamella.errors import ConfigError, Problem, UsageError
from lamella.text.files import BOM, write_atomic


def parse_value(text: str) -> Any:
    """A value from the command line: TOML where it is TOML (`12`, `true`, `["a"]`), else a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def set_value(file: Path, key: str, value: Any) -> None:
    """Set a dotted key. Raises `ConfigError` when the result would not be valid; then nothing changes."""
    _edit(file, key, value, remove=False)


def unset_value(file: Path, key: str) -> bool:
    """Remove a dotted key; False when it was not there."""
    return _edit(file, key, None, remove=True)


def _edit(file: Path, key: str, value: Any, *, remove: bool) -> bool:
    import tomlkit
    from tomlkit.exceptions import ParseError

    parts = key.split(".")
    if not all(parts):
        raise UsageError(f"config key {key!r}: expected a dotted key such as compaction.reserve_tokens")
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(file.parent / f".{file.name}.lock", timeout=30)
    try:
        with lock:
            text = file.read_bytes().removeprefix(BOM).decode("utf-8") if file.exists() else ""
            try:
                document = tomlkit.parse(text)
            except ParseError as error:
                raise ConfigError([Problem("", f"is not valid TOML: {error}", str(file))]) from error
            table: Any = document
            for part in parts[:-1]:
                if part not in table:
                    if remove:
                        return False
                    table[part] = tomlkit.table()
                table = table[part]
                if not hasattr(table, "keys"):
                    raise UsageError(f"config key {key!r}: {part!r} is a value, not a table, in {file}")
            if remove:
                if parts[-1] not in table:
                    return False
                del table[parts[-1]]
            else:
                table[parts[-1]] = value
            _require_valid(tomllib.loads(tomlkit.dumps(document)), key, file)
            write_atomic(file, tomlkit.dumps(document).encode("utf-8"))
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

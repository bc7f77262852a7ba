"""Plain data to attrs classes, collecting every fault with its key, value, expectation and near match."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar, Union

import attrs

from lamella.errors import Problem

T = TypeVar("T")


def structure(cls: type[T], data: Any, *, path: str = "", origin: str = "") -> tuple[T | None, list[Problem]]:
    """(value, problems). Unknown keys are warnings and do not hinder; errors leave the value None."""
    problems: list[Problem] = []
    value = _class(cls, data, path, origin, problems)
    failed = any(p.level == "error" for p in problems)
    return (None if failed else value), problems


def near_match(word: str, known: Sequence[str]) -> str:
    """` (did you mean X?)`, or nothing."""
    import difflib

    found = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f" (did you mean {found[0]}?)" if found else ""


@lru_cache
def field_types(cls: Any) -> dict[str, Any]:
    """Resolved types of a class's fields."""
    return {n: t for n, t in typing.get_type_hints(cls).items() if n in attrs.fields_dict(cls)}


def _class(cls: type[T], data: Any, path: str, origin: str, problems: list[Problem]) -> T | None:
    if not isinstance(data, Mapping):
        problems.append(Problem(path, f"expected a table, found {describe(data)}", origin))
        return None
    hints = field_types(typing.cast(Any, cls))
    fields: Mapping[str, attrs.Attribute[Any]] = {a.name: a for a in attrs.fields(cls)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    failed = False
    for key, raw in data.items():
        key_path = f"{path}.{key}" if path else str(key)
        if key not in hints:
            text = f"unknown key{near_match(str(key), list(hints))}"
            problems.append(Problem(key_path, text, origin, "warning"))
            continue
        before = len(problems)
        value = _value(hints[key], raw, key_path, origin, problems)
        attribute = fields[key]
        if len([p for p in problems[before:] if p.level == "error"]):
            failed = True
        elif _valid(attribute, value, raw, key_path, origin, problems):
            values[key] = value
        else:
            failed = True
    required = [n for n, a in fields.items() if a.default is attrs.NOTHING and n not in data]
    problems += [Problem(f"{path}.{n}" if path else n, "is required", origin) for n in required]
    return None if failed or required else cls(**values)


def _valid(
    attribute: attrs.Attribute[Any], value: Any, raw: Any, path: str, origin: str, problems: list[Problem]
) -> bool:
    if attribute.validator is None:
        return True
    try:
        attribute.validator(None, attribute, value)
    except (ValueError, TypeError) as error:
        problems.append(Problem(path, f"{error}, found {describe(raw)}", origin))
        return False
    return True


def _value(kind: Any, raw: Any, path: str, origin: str, problems: list[Problem]) -> Any:
    base = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if kind is Any:
        return raw
    if base in (Union, types.UnionType):
        options = [a for a in arguments if a is not type(None)]
        return None if raw is None else _value(options[0], raw, path, origin, problems)
    if attrs.has(kind):
        return _class(kind, raw, path, origin, problems)
    if base is not None and isinstance(base, type) and issubclass(base, Mapping):
        if not isinstance(raw, Mapping):
            problems.append(Problem(path, f"expected a table, found {describe(raw)}", origin))
            return None
        return {str(k): _value(arguments[1], v, f"{path}.{k}", origin, problems) for k, v in raw.items()}
    if base is tuple:
        if not isinstance(raw, (list, tuple)):
            problems.append(Problem(path, f"expected a list, found {describe(raw)}", origin))
            return None
        return tuple(_value(arguments[0], v, f"{path}[{i}]", origin, problems) for i, v in enumerate(raw))
    if _is_plain(kind, raw):
        return float(raw) if kind is float else raw
    problems.append(Problem(path, f"expected {_NAMES.get(kind, str(kind))}, found {describe(raw)}", origin))
    return None


_NAMES = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}


def _is_plain(kind: Any, raw: Any) -> bool:
    if kind is bool:
        return isinstance(raw, bool)
    if isinstance(raw, bool):
        return False
    if kind is float:
        return isinstance(raw, (int, float)) and raw == raw and abs(raw) != float("inf")
    return isinstance(kind, type) and isinstance(raw, kind)


def describe(value: Any) -> str:
    """A value as it would stand in the file, shortened."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, (list, tuple)):
        return "a list"
    text = repr(value) if not isinstance(value, str) else f'"{value}"'
    return text if len(text) <= 60 else text[:57] + "..."


def flatten(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """(dotted key, value) of every leaf of a settings object."""
    if attrs.has(type(value)):
        items = [(a.name, getattr(value, a.name)) for a in attrs.fields(type(value))]
    elif isinstance(value, Mapping):
        items = [(str(k), v) for k, v in value.items()]
        if not items:
            return [(path, {})]
    else:
        return [(path, list(value) if isinstance(value, tuple) else value)]
    return [leaf for name, v in items for leaf in flatten(v, f"{path}.{name}" if path else name)]

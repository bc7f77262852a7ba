"""Checking a tool call's arguments against the tool's JSON schema.

Models often send the right value in the wrong type ("12" for 12). Such values are converted on a
copy, where the schema leaves no doubt, before they are checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lamella.errors import ToolError
from lamella.text.javascript import js_json, js_number
from lamella.types.messages import JsonObject
from lamella.types.model import ToolSpec
from lamella.types.tools import Tool

if TYPE_CHECKING:
    from jsonschema import ValidationError

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
_MAX_ECHOED_STRING = 500
_MAX_ECHO = 4_000
_MAX_PROBLEMS = 20
_NOTHING = object()


def validate_arguments(tool: Tool | ToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with types converted where needed; the input is left as it is.

    Raises `ToolError` that lists every problem and the arguments as they were received.
    """
    from jsonschema import Draft202012Validator, SchemaError

    schema = _plain(tool.parameters)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ToolError(f'Tool "{tool.name}" has an invalid parameter schema: {error.message}') from error
    coerced: dict[str, Any] = _Coercion(schema).apply(schema, _plain(arguments))
    problems = _describe(Draft202012Validator(schema).iter_errors(coerced))
    if problems:
        raise ToolError(_report(tool.name, problems, arguments))
    return coerced


# --- conversion --------------------------------------------------------------------------------------


class _Coercion:
    """Converts values towards a schema; what cannot be converted is passed on for the check to report."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root

    def apply(self, schema: Any, value: Any) -> Any:
        schema = self._resolved(schema)
        if not isinstance(schema, Mapping):
            return value
        for branches in (schema.get("anyOf"), schema.get("oneOf")):
            if isinstance(branches, list):
                value = self._through_branches(branches, value)
        for part in schema.get("allOf", ()):
            value = self.apply(part, value)
        types = _types(schema)
        if types and not any(_is_type(value, t) for t in types):
            value = self._to_type(schema, types, value)
        if isinstance(value, dict):
            return self._object(schema, value)
        if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
            return [self.apply(schema["items"], item) for item in value]
        return value

    def _object(self, schema: JsonObject, value: dict[str, Any]) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        others = schema.get("additionalProperties")
        out = {}
        for key, item in value.items():
            part = self._resolved(properties.get(key, others))
            if item is None and key in properties and key not in required and not self._allows_null(part):
                continue  # null for "not given"
            out[key] = self.apply(part, item) if isinstance(part, Mapping) else item
        return out

    def _through_branches(self, branches: list[Any], value: Any) -> Any:
        if any(self._matches(branch, value) for branch in branches):
            return value
        for branch in branches:
            converted = self.apply(branch, value)
            if self._matches(branch, converted):
                return converted
        return value

    def _to_type(self, schema: JsonObject, types: list[str], value: Any) -> Any:
        for kind in types:
            converted = _convert(kind, value)
            if converted is not _NOTHING:
                return converted
        if "array" in types and not isinstance(value, (dict, type(None))):
            items = schema.get("items", {})
            element = self.apply(items, value)
            if self._matches(items, element):
                return [element]
        return value

    def _matches(self, schema: Any, value: Any) -> bool:
        from jsonschema import Draft202012Validator

        validator = Draft202012Validator(self._root).evolve(schema=schema)
        return bool(validator.is_valid(value))

    def _allows_null(self, schema: Any) -> bool:
        return self._matches(schema, None) if isinstance(schema, Mapping) else True

    def _resolved(self, schema: Any) -> Any:
        """Follow references within the schema; others are left to the validator."""
        seen: set[str] = set()
        while isinstance(schema, Mapping) and isinstance(reference := schema.get("$ref"), str):
            if not reference.startswith("#") or reference in seen:
                return schema
            seen.add(reference)
            target: Any = self._root
            for step in reference.removeprefix("#").strip("/").split("/"):
                if step:
                    target = target.get(step) if isinstance(target, Mapping) else None
            schema = target
        return schema


def _types(schema: JsonObject) -> list[str]:
    kind = schema.get("type")
    return [kind] if isinstance(kind, str) else list(kind or ())


def _is_type(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return _is_number(value) and float(value).is_integer()
        case "number":
            return _is_number(value)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return value is None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _convert(kind: str, value: Any) -> Any:
    """`value` as a JSON value of type `kind`, or `_NOTHING` when that is not clear."""
    match kind:
        case "string":
            return _to_string(value)
        case "boolean":
            return {"true": True, "false": False}.get(value.strip().lower(), _NOTHING) if _text(value) else _NOTHING
        case "integer" | "number" if _text(value) and _NUMBER.fullmatch(value):
            number = float(value)
            whole = number.is_integer() and abs(number) < 2**53
            return int(number) if whole else number if kind == "number" else _NOTHING
        case "array" | "object" if _text(value):
            return _from_json_text(value, list if kind == "array" else dict)
        case _:
            return _NOTHING


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _to_string(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return js_json(value)
    return js_number(value) if isinstance(value, (int, float)) else _NOTHING


def _from_json_text(text: str, kind: type) -> Any:
    """A list or object that a model sent as JSON inside a string."""
    try:
        value = json.loads(text)
    except ValueError:
        return _NOTHING
    return value if isinstance(value, kind) else _NOTHING


def _plain(value: Any) -> Any:
    """A deep copy in dicts and lists, as the schema library expects them."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


# --- the report --------------------------------------------------------------------------------------


def _describe(errors: Iterable[ValidationError]) -> list[str]:
    lines = [line for error in errors for line in _lines(error)]
    return sorted(dict.fromkeys(lines))


def _lines(error: ValidationError) -> list[str]:
    path = [str(step) for step in error.absolute_path]
    rule: Any = error.validator_value
    match error.validator:
        case "required":
            return [_line([*path, name], "missing") for name in rule if name not in error.instance]
        case "additionalProperties" if rule is False:
            known = error.schema.get("properties", {})
            return [_line([*path, name], "unknown field") for name in error.instance if name not in known]
        case "type":
            expected = " or ".join([rule] if isinstance(rule, str) else rule)
            return [_line(path, f"expected {expected}, got {_type_name(error.instance)}")]
        case "enum":
            return [_line(path, f"expected one of {js_json(rule)}")]
        case "const":
            return [_line(path, f"expected {js_json(rule)}")]
        case "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum":
            words = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most"}
            return [_line(path, f"expected {words.get(str(error.validator), 'less than')} {rule}")]
        case "anyOf" | "oneOf" if error.context:
            # null stands for "not given": whoever gives something wants one of the others
            wanted = [e for e in error.context if (e.validator, e.validator_value) != ("type", "null")]
            return [line for inner in wanted or error.context for line in _lines(inner)]
        case "maxLength":
            return [_line(path, f"expected at most {rule} characters, got {len(error.instance)}")]
        case _ if len(error.message) > _MAX_ECHOED_STRING:  # it repeats the value
            return [_line(path, f"does not keep to {error.validator} {js_json(rule)}"[:_MAX_ECHOED_STRING])]
        case _:
            return [_line(path, error.message)]


def _line(path: list[str], message: str) -> str:
    return f"  - {_shown('.'.join(path)) or 'root'}: {message}"


def _type_name(value: Any) -> str:
    names = ("boolean", "number", "string", "array", "object", "null")
    return next(name for name in names if _is_type(value, name))


def _report(name: str, problems: list[str], arguments: Mapping[str, Any]) -> str:
    received = json.dumps(_echo(arguments), indent=2, ensure_ascii=False, default=str)
    if len(received) > _MAX_ECHO:
        received = f"{received[:_MAX_ECHO]}... ({len(received)} characters)"
    more = [f"  - and {len(problems) - _MAX_PROBLEMS} more"] if len(problems) > _MAX_PROBLEMS else []
    listed = "\n".join(problems[:_MAX_PROBLEMS] + more)
    return f'Validation failed for tool "{name}":\n{listed}\n\nReceived arguments:\n{received}'


def _echo(value: Any) -> Any:
    """Arguments as they are shown again: long strings shortened."""
    if isinstance(value, str):
        return _shown(value)
    if isinstance(value, Mapping):
        return {_shown(k): _echo(v) for k, v in value.items()}
    return [_echo(v) for v in value] if isinstance(value, (list, tuple)) else value


def _shown(text: str) -> str:
    return text if len(text) <= _MAX_ECHOED_STRING else f"{text[:_MAX_ECHOED_STRING]}... ({len(text)} characters)"

"""Short forms for the JSON schemas of the built-in tools' parameters."""

from __future__ import annotations

from typing import Any


def parameters(required: tuple[str, ...] = (), **properties: dict[str, Any]) -> dict[str, Any]:
    """A closed object schema."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def string(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def integer(description: str, minimum: int = 0) -> dict[str, Any]:
    return {"type": "integer", "minimum": minimum, "description": description}


def boolean(description: str) -> dict[str, Any]:
    return {"type": "boolean", "description": description}

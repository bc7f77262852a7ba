"""A branch written again with other messages in some of its entries: pure, entries in, entries out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lamella.sessions.lines import to_entry
from lamella.types.entries import POSITION_TYPE, Entry
from lamella.types.message_json import dump_message
from lamella.types.messages import JsonObject, Message

# Fields of entries that name another entry.
_REFERENCES = ("firstKeptEntryId", "targetId", "fromId")


def rebranched(
    branch: Sequence[Entry],
    replacements: Mapping[str, Message],
    labels: Mapping[str, str],
    new_id: Callable[[], str],
) -> list[Entry]:
    """Copies of a branch (root first) from the first replaced entry on, chained below what is before it.

    Copies keep their times. References among them lead to the copies, those to earlier entries
    stay. Label entries are left out of the chain; labels of copied entries are set again at its end.
    """
    first = next((i for i, entry in enumerate(branch) if entry.id in replacements), None)
    if first is None:
        return []
    moved = [entry for entry in branch[first:] if entry.type != "label"]
    ids = {entry.id: new_id() for entry in moved}
    parent = branch[first - 1].id if first else branch[first].parent_id
    copies: list[Entry] = []
    for entry in moved:
        fields = {**_with_references(entry, ids), "id": ids[entry.id], "parentId": parent}
        if entry.id in replacements:
            fields["message"] = dump_message(replacements[entry.id])
        copies.append(to_entry(fields))
        parent = copies[-1].id
    for target, label in labels.items():
        if target in ids:
            when = copies[-1].timestamp
            fields = {"type": "label", "id": new_id(), "parentId": parent, "timestamp": when}
            copies.append(to_entry({**fields, "targetId": ids[target], "label": label}))
            parent = copies[-1].id
    return copies


def _with_references(entry: Entry, ids: Mapping[str, str]) -> JsonObject:
    """An entry's fields, with the names of copied entries replaced by those of their copies."""
    fields: dict[str, Any] = dict(entry.fields)
    for name in _REFERENCES:
        if isinstance(fields.get(name), str):
            fields[name] = ids.get(fields[name], fields[name])
    data = fields.get("data")
    if fields.get("customType") == POSITION_TYPE and isinstance(data, Mapping) and data.get("entryId") in ids:
        fields["data"] = {**data, "entryId": ids[data["entryId"]]}
    return fields

"""What the last compaction handed down: in the details of its entry, and in its summary."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from lamella.agent.summaries import TURN_CONTEXT
from lamella.text.conversation import FileLists, FileOps, file_lists
from lamella.types.entries import Compaction, Entry
from lamella_compaction_safeguard import failures as failed
from lamella_compaction_safeguard import preserved
from lamella_compaction_safeguard.failures import Failure, Failures
from lamella_compaction_safeguard.headings import IDENTIFIERS, Part, joined, parts_of
from lamella_compaction_safeguard.identifiers import find_identifiers

NOTES = "## Left out of this summary"
REQUEST_TAG = "latest-user-request"
RULES_TAG = "workspace-critical-rules"
MAX_FILES = 300

_TURNS, _REQUESTS = "## Earlier turns", "## Earlier user requests"
_MADE_ANEW = (failed.HEADING, NOTES)
_FILES_OR_RULES = re.compile(rf"<(read-files|modified-files|{RULES_TAG})>\n.*?\n</\1>", re.DOTALL)
_REQUEST = re.compile(rf"<{REQUEST_TAG}>\n(.*?)\n</{REQUEST_TAG}>", re.DOTALL)


@frozen(slots=True)
class Carried:
    """What goes on from one compaction to the next.

    `request` is the user's, when no message has it. `quotes` tells whether turns that the summary
    quotes are in no other part of it.
    """

    files: FileOps = FileOps()
    failures: Failures = Failures()
    identifiers: tuple[str, ...] = ()
    request: str = field(default="", repr=False)
    quotes: bool = True


def latest_compaction(entries: Sequence[Entry]) -> Compaction | None:
    """The last compaction of a branch, root first."""
    found = next((entry for entry in reversed(entries) if entry.type == "compaction"), None)
    return Compaction.of(found) if found is not None else None


def carried_from(compaction: Compaction | None) -> Carried:
    """What a compaction of any writer handed down; malformed details count as none."""
    if compaction is None:
        return Carried()
    details = compaction.details if isinstance(compaction.details, Mapping) else {}
    known = details.get("identifiers")
    named = _strings(known) if isinstance(known, list) else _identifiers_in(compaction.summary)
    request = _REQUEST.search(compaction.summary)
    return Carried(
        FileOps.from_details(details),
        _failures(details),
        named,
        request[1] if request else "",
        details.get("quotedOnly") is not False,
    )


def all_files(read: Sequence[str], modified: Sequence[str], carried: FileOps) -> FileLists:
    """The files of a compaction and of those before it, at most 300 of each kind."""
    now = FileOps(read=frozenset(read), edited=frozenset(modified))
    lists = file_lists(now | carried)
    return FileLists(_newest(lists.read, now.read), _newest(lists.modified, now.edited))


def without_additions(summary: str, *, quotes: bool = True) -> str:
    """An earlier summary as the next one takes it up.

    What is made anew goes: files, rules, failures. Requests and the beginnings of split turns stay as
    earlier ones, and so do quoted turns, unless they were summarised too (no `quotes`).
    """
    text = _REQUEST.sub(lambda found: f"{_REQUESTS}\n- {found[1]}", summary)
    kept: list[Part] = []
    earlier: dict[str, list[str]] = {_TURNS: [], _REQUESTS: []}
    for part in parts_of(_FILES_OR_RULES.sub("", text)):
        if part.heading == preserved.HEADING:
            earlier[_TURNS] += [part.text] if quotes else []
        elif part.heading in earlier:
            earlier[part.heading].append(part.text)
        elif part.heading not in _MADE_ANEW:
            said, _, turn = part.text.partition(TURN_CONTEXT.strip())
            kept.append(Part(part.heading, said.strip()))
            earlier[_TURNS] += [turn.strip()] if turn.strip() else []
    kept += [Part(heading, "\n".join(texts)) for heading, texts in earlier.items() if texts]
    return joined(kept).strip()


def _newest(paths: Sequence[str], now: frozenset[str]) -> tuple[str, ...]:
    """At most 300 paths, those of now first, in their order."""
    chosen = frozenset(sorted(paths, key=lambda path: path not in now)[:MAX_FILES])
    return tuple(path for path in paths if path in chosen)


def _identifiers_in(summary: str) -> tuple[str, ...]:
    texts = (part.text for part in parts_of(summary) if part.heading == IDENTIFIERS)
    return tuple(i.text for i in find_identifiers("\n".join(texts)))


def _failures(details: Mapping[str, Any]) -> Failures:
    stored, more = details.get("toolFailures"), details.get("toolFailuresLeftOut")
    shown = tuple(
        Failure(item["callId"], item["line"])
        for item in (stored if isinstance(stored, list) else ())
        if isinstance(item, Mapping) and isinstance(item.get("callId"), str) and isinstance(item.get("line"), str)
    )
    return Failures(shown, more if isinstance(more, int) and not isinstance(more, bool) and more > 0 else 0)


def _strings(values: list[Any]) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))

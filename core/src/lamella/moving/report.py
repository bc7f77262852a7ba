"""What an import or export does, thing by thing: told before it is done, and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

from attrs import asdict, frozen

Kind: TypeAlias = Literal["setting", "workspace", "transcript", "archive", "session", "other"]
# add: it is not there yet. grow: it is there, and its source has gone on. same: nothing to do.
# kept: it is there and differs, so it stays as it is. left_out: it cannot or must not be taken over.
Action: TypeAlias = Literal["add", "grow", "same", "kept", "left_out"]


@frozen(slots=True)
class Item:
    """One thing: where it comes from, where it goes (empty: nowhere), what becomes of it and why."""

    kind: Kind
    source: str
    target: str
    action: Action
    reason: str = ""


@frozen(slots=True)
class Report:
    """All things of one move. `program` is the other program, `folder` its folder.

    With `dry_run` nothing has been done; with `in_place` turns append to the other program's files.
    """

    program: str
    folder: str
    items: tuple[Item, ...]
    dry_run: bool = False
    in_place: bool = False

    @property
    def changes(self) -> int:
        """How many things were (or would be) added or continued."""
        return sum(item.action in ("add", "grow") for item in self.items)

    def to_json(self) -> dict[str, Any]:
        return {
            "program": self.program,
            "folder": self.folder,
            "dryRun": self.dry_run,
            "inPlace": self.in_place,
            "changes": self.changes,
            "items": [asdict(item) for item in self.items],
        }


_TITLES: dict[Action, tuple[str, str]] = {
    "add": ("Added", "Would be added"),
    "grow": ("Continued", "Would be continued"),
    "kept": ("Differs here and stays as it is", "Differs here and would stay as it is"),
    "left_out": ("Left out", "Would be left out"),
}


def report_text(report: Report, *, most: int = 20) -> str:
    """The report for people; of many things of a kind, the first `most`."""
    counts = Counter(item.action for item in report.items)
    lines = [_headline(report)]
    for action, titles in _TITLES.items():
        found = [item for item in report.items if item.action == action]
        if found:
            lines += ["", f"{titles[report.dry_run]} ({counts[action]}):", *_listed(found, most)]
    if counts["same"]:
        lines += ["", f"Already here: {counts['same']}."]
    return "\n".join(lines)


def _headline(report: Report) -> str:
    done = f"{report.program}, {report.folder}: {report.changes} changes"
    return f"{done}; nothing was changed (dry run)." if report.dry_run else f"{done}."


def _listed(items: Sequence[Item], most: int) -> Iterator[str]:
    for kind in dict.fromkeys(item.kind for item in items):
        of_kind = [item for item in items if item.kind == kind]
        for item in of_kind[:most]:
            target = f" -> {item.target}" if item.target else ""
            reason = f"  ({item.reason})" if item.reason else ""
            yield f"  {item.kind}  {item.source}{target}{reason}"
        if len(of_kind) > most:
            yield f"  {item.kind}  ... and {len(of_kind) - most} more (--json lists all)"

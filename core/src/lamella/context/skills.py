"""Skills: what is told of them in a prompt. Pure functions; `builtin/skills.py` finds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import frozen

from lamella.text.front_matter import front_matter
from lamella.text.unicode import character_start, one_line

_MOST_NAME = 64
_MOST_DESCRIPTION = 1024  # as the format's authors have it
_INTRODUCTION = (
    "## Skills\n\nEach skill is a set of instructions for one kind of task. When a task fits one, {how} before "
    "you begin, and follow it. Do not read more skills than the task needs."
)
_WITH_TOOL = "read it with read_skill"
_WITHOUT_TOOL = "read the file at its location"


class BadSkill(ValueError):
    """A SKILL.md that cannot be used; the text says why."""


@frozen(slots=True)
class Skill:
    """A skill: its name, when it is of use, and the SKILL.md that says how."""

    name: str
    description: str
    file: str


def parse_skill(text: str, file: Path) -> Skill | None:
    """The skill that a SKILL.md describes; None when it says that models must not use it by themselves.

    The name is that of the folder unless the front matter has one. A description that is too long is
    cut, so that one skill does not take the room of the others. Raises `BadSkill`.
    """
    try:
        fields = front_matter(text)
    except ValueError as error:
        raise BadSkill(str(error)) from None
    if fields is None:
        raise BadSkill("line 1: expected front matter (`---`) with name and description")
    if fields.get("disable-model-invocation", "").lower() == "true":
        return None
    name = one_line(fields.get("name") or file.parent.name).strip()
    description = " ".join(fields.get("description", "").split())
    if not name or len(name) > _MOST_NAME:
        raise BadSkill(f"name {name[:_MOST_NAME]!r}: expected 1 to {_MOST_NAME} characters")
    if not description:
        raise BadSkill("description: is required, since it tells when the skill is of use")
    return Skill(name, _cut(one_line(description)), str(file))


def _cut(description: str) -> str:
    if len(description) <= _MOST_DESCRIPTION:
        return description
    return description[: character_start(description, _MOST_DESCRIPTION - 1)] + "…"


def by_precedence(sources: Iterable[Iterable[Skill]]) -> tuple[Skill, ...]:
    """Skills of all sources by name; of two with one name that of the later source counts."""
    found = {skill.name: skill for source in sources for skill in source}
    return tuple(found[name] for name in sorted(found))


@frozen(slots=True)
class SkillList:
    """The text for a prompt, and how many of how many skills are in it."""

    text: str
    shown: int
    total: int


def list_skills(
    skills: Sequence[Skill], *, most: int, max_chars: int, home: str = "", with_tool: bool = True
) -> SkillList:
    """The longest beginning of `skills` within `most` entries and `max_chars` characters of list.

    `home` is shown as `~`; `with_tool` tells that read_skill is on offer.
    """
    entries: list[str] = []
    room = max_chars - len(_framed([]))
    for skill in skills[:most]:
        entry = _entry(skill, home)
        room -= len(entry) + 1
        if room < 0:
            break
        entries.append(entry)
    if not entries:
        return SkillList("", 0, len(skills))
    parts = [_INTRODUCTION.format(how=_WITH_TOOL if with_tool else _WITHOUT_TOOL), _framed(entries)]
    if len(entries) < len(skills):
        parts.insert(1, f"Only {len(entries)} of {len(skills)} skills are listed: the list is cut.")
    return SkillList("\n\n".join(parts), len(entries), len(skills))


def _framed(entries: Sequence[str]) -> str:
    return "\n".join(("<available_skills>", *entries, "</available_skills>"))


def _entry(skill: Skill, home: str) -> str:
    location = skill.file
    if home and location.startswith(home.rstrip("/\\") + "/"):
        location = "~" + location[len(home.rstrip("/\\")) :]
    fields = (("name", skill.name), ("description", skill.description), ("location", one_line(location)))
    from html import escape  # not light, and of use only where there are skills

    lines = "\n".join(f"    <{tag}>{escape(text, quote=False)}</{tag}>" for tag, text in fields)
    return f"  <skill>\n{lines}\n  </skill>"

"""What a flush asks the model. Prompts of the configuration get the rules that they lack."""

from __future__ import annotations

from datetime import datetime

from lamella.errors import LamellaError
from lamella.memory.reading import read_memory
from lamella.memory.writer import MemoryWriter
from lamella.text.days import human_day, utc_now, zone
from lamella.text.silent import SILENT

_DAY = "YYYY-MM-DD"
_TIME = "Current time:"
# So much of the end of today's note is shown, so that nothing is written twice.
_NOTE_CHARS = 2_000

_PROMPT = (
    "Older parts of this conversation will soon be compacted. Save now what must outlast them: decisions and "
    "their reasons, preferences, names, dates, numbers, open tasks. One short line for each, of the form "
    "`- topic: a, b, c`, understandable by itself and in the language of the conversation, with names, paths, "
    "numbers and identifiers letter by letter."
)
_SYSTEM = "This is a turn that nobody sees, for saving memories before a compaction. Do not go on with the task."
_APPEND_ONLY = "The tool only appends: write new lines only, and nothing that the file holds already."
_READ_ONLY = "Every other file is read-only now, MEMORY.md, AGENTS.md and the other workspace files too."
_SILENCE = f"Answer {SILENT} when you are done, and at once when there is nothing worth saving, which is usual."


def flush_prompt(writer: MemoryWriter, timezone: str, custom: str = "", *, now: datetime | None = None) -> str:
    """The prompt of a flush at a moment (default: this one), with the end of today's note."""
    now = now or utc_now()
    day = human_day(now, timezone)
    path = f"memory/{day}.md"
    text = _with_rules((custom.strip() or _PROMPT).replace(_DAY, day), path)
    if _TIME not in text:
        text += f"\n{_time_line(now, timezone)}"
    saved = _end_of(writer, path)
    return f"{text}\n\n<already-saved>\n{saved}\n</already-saved>" if saved else text


def flush_system_prompt(path: str, custom: str = "") -> str:
    """What is added to the system prompt of a flush that writes to `path`."""
    day = path.rpartition("/")[2].removesuffix(".md")
    return _with_rules((custom.strip() or _SYSTEM).replace(_DAY, day), path)


def _with_rules(text: str, path: str) -> str:
    """The text with those rules behind it that it does not hold yet."""
    target = f"Write with the tool `write` into {path} and nowhere else; the folder is made when it is missing."
    return "\n".join([text, *(rule for rule in (target, _APPEND_ONLY, _READ_ONLY, _SILENCE) if rule not in text)])


def _time_line(now: datetime, timezone: str) -> str:
    local = now.astimezone(zone(timezone))
    name = timezone or local.tzname() or "local"
    return f"{_TIME} {local:%Y-%m-%d %H:%M} ({name}) / {now:%Y-%m-%d %H:%M} UTC"


def _end_of(writer: MemoryWriter, path: str) -> str:
    """The end of a note, from the beginning of a line on; empty when it cannot be read."""
    try:
        text = read_memory(writer.workspace, path).text.rstrip()
    except LamellaError:
        return ""
    if len(text) <= _NOTE_CHARS:
        return text
    return text[-_NOTE_CHARS:].partition("\n")[2]

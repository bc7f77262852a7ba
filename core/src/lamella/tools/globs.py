"""Shell patterns and a subset of .gitignore, over paths with slashes.

Supported in .gitignore files, in every folder from the workspace down: comments, blank lines,
negation with `!`, a final `/` for folders only, a slash elsewhere to anchor the pattern to the
file's folder, `*`, `?`, `[...]` and `**`. As in git, nothing below an ignored folder can be
brought back. Global excludes and `.git/info/exclude` are not read.
"""

from __future__ import annotations

import re
from pathlib import Path

from attrs import field, frozen

_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_MAX_ALTERNATIVES = 64


def glob_regex(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """A pattern for whole paths: `*` and `?` stop at slashes, `**` does not, `{a,b}` is either.

    Raises `ValueError` when braces stand for too many patterns.
    """
    source = "|".join(f"(?:{_translate(p)})" for p in _expanded(pattern))
    return re.compile(source, re.IGNORECASE if ignore_case else 0)


def matches_glob(pattern: re.Pattern[str], relative: str, *, by_name: bool) -> bool:
    """Whether a path, or only its last part, fits the pattern."""
    return pattern.fullmatch(relative.rsplit("/", 1)[-1] if by_name else relative) is not None


def _expanded(pattern: str) -> list[str]:
    done: list[str] = []
    todo = [pattern]
    while todo:
        if len(todo) + len(done) > _MAX_ALTERNATIVES:
            raise ValueError(f"the braces in {pattern!r} stand for more than {_MAX_ALTERNATIVES} patterns")
        current = todo.pop()
        found = _BRACES.search(current)
        if found is None:
            done.append(current)
        else:
            todo += [current[: found.start()] + part + current[found.end() :] for part in found[1].split(",")]
    return done


def _translate(pattern: str) -> str:
    out, i = "", 0
    while i < len(pattern):
        piece, i = _next_piece(pattern, i)
        out += piece
    return out


def _next_piece(pattern: str, i: int) -> tuple[str, int]:
    """The regular expression for what stands at `i`, and where the next piece starts."""
    at_segment_start = i == 0 or pattern[i - 1] == "/"
    if pattern.startswith("**/", i) and at_segment_start:
        return "(?:[^/]+/)*", i + 3
    if pattern.startswith("**", i):
        return ".*", i + 2
    char = pattern[i]
    if char == "*":
        return "[^/]*", i + 1
    if char == "?":
        return "[^/]", i + 1
    if char == "[":
        end = pattern.find("]", i + 2)
        if end > 0:
            return _character_class(pattern[i + 1 : end]), end + 1
    if char == "\\" and i + 1 < len(pattern):
        return re.escape(pattern[i + 1]), i + 2
    return re.escape(char), i + 1


def _character_class(body: str) -> str:
    negated = body[0] in "!^"
    members = body[1:] if negated else body
    escaped = members.replace("\\", r"\\").replace("[", r"\[")
    for doubled in ("&&", "||", "~~", "--"):  # reserved for set operations in regular expressions
        escaped = escaped.replace(doubled, f"{doubled[0]}\\{doubled[1]}")
    source = f"[{'^/' if negated else ''}{escaped}]"
    try:
        re.compile(source)
    except re.error:  # a backward range such as z-a: take the brackets as they stand
        return re.escape(f"[{body}]")
    return source


# --- .gitignore --------------------------------------------------------------------------------------


@frozen(slots=True)
class _Rule:
    pattern: re.Pattern[str]
    base: str  # folder of the .gitignore file, relative to the workspace; "" or ending in a slash
    by_name: bool
    folders_only: bool
    ignores: bool


@frozen(slots=True)
class IgnoreRules:
    """Rules that hold in a folder, outermost first; the last one that matches decides."""

    rules: tuple[_Rule, ...] = field(default=(), repr=False)

    def within(self, root: Path, folder: str) -> IgnoreRules:
        """These rules and those of the folder's own .gitignore (`folder` relative to `root`)."""
        try:
            text = (root / folder / ".gitignore").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return self  # none there, or none that we may read
        base = f"{folder}/" if folder else ""
        found = [_parse(line, base) for line in text.split("\n")]
        return IgnoreRules(self.rules + tuple(rule for rule in found if rule is not None))

    def ignores(self, relative: str, is_folder: bool) -> bool:
        for rule in reversed(self.rules):
            if rule.folders_only and not is_folder:
                continue
            if matches_glob(rule.pattern, relative[len(rule.base) :], by_name=rule.by_name):
                return rule.ignores
        return False


def _parse(line: str, base: str) -> _Rule | None:
    text = line.removesuffix("\r")
    if not text.endswith("\\ "):
        text = text.rstrip(" ")
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[1:] if negated else text
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    text = text.removeprefix("/")
    if not text:
        return None
    return _Rule(re.compile(_translate(text)), base, not anchored, folders_only, not negated)

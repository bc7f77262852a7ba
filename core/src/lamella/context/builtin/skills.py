"""Skills: folders with a SKILL.md, listed in the prompt and read with a tool.

Sources, later ones counting over earlier ones of the same name: `extra_dirs`, `~/.lamella/skills`
(the state folder), `~/.agents/skills`, `<workspace>/.agents/skills`, `<workspace>/skills`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from lamella.config.schema import between, setting
from lamella.context.prompt import SKILLS_ORDER, WORKING
from lamella.context.skills import BadSkill, Skill, by_precedence, list_skills, parse_skill
from lamella.context.snapshots import Snapshots
from lamella.errors import ToolError
from lamella.paths import expand
from lamella.plugins import hookimpl
from lamella.text.inside import Refused, read_inside
from lamella.text.unicode import well_formed
from lamella.types.hooks import PromptContext, PromptSection, RegistrationContext, SessionEnd
from lamella.types.results import ToolResult
from lamella.types.tools import Tool, ToolContext, ToolFunction

SKILL_FILE = "SKILL.md"
_TOOL = "read_skill"

log = logging.getLogger(__name__)


@frozen(slots=True)
class SkillsConfig:
    """Settings of the plugin, with their defaults."""

    extra_dirs: tuple[str, ...] = setting((), "More folders with skills; those of the workspace count over them.")
    max_candidates: int = setting(300, "Most folders of one source that are looked at.", check=between(0))
    max_per_source: int = setting(200, "Most skills of one source.", check=between(0))
    max_in_prompt: int = setting(150, "Most skills in the prompt.", check=between(0))
    max_prompt_chars: int = setting(30_000, "Most characters of the list in the prompt.", check=between(0))
    max_file_bytes: int = setting(256_000, "Most bytes of a SKILL.md, and of a file that is read.", check=between(1))


class Skills:
    """Lists skills in the prompt, and reads them for the model."""

    name = "skills"
    Config = SkillsConfig

    def __init__(self, config: SkillsConfig) -> None:
        self.config = config
        self._snapshots = Snapshots("skills", list[Skill])

    @hookimpl
    def prompt_sections(self, context: PromptContext) -> Iterable[PromptSection]:
        skills = self._snapshots.of(context, lambda: [_to_show(s) for s in self.find(context)])
        listed = list_skills(
            skills,
            most=self.config.max_in_prompt,
            max_chars=self.config.max_prompt_chars,
            home=_home(),
            with_tool=_TOOL in context.tools,
        )
        note = f"{listed.shown} of {listed.total} skills" if listed.shown < listed.total else f"{listed.total} skills"
        details = {"skills": [s.name for s in skills[: listed.shown]], "total": listed.total}
        return (PromptSection("skills", listed.text, SKILLS_ORDER, WORKING, note=note, details=details),)

    @hookimpl
    def register_tools(self, context: RegistrationContext) -> Iterable[Tool]:
        if not self.find(context):
            return ()
        return (Tool(_TOOL, _DESCRIPTION, _SCHEMA, self._reader(context), owner="plugin"),)

    @hookimpl
    def session_end(self, event: SessionEnd) -> None:
        self._snapshots.forget(event.session_id)

    def find(self, context: RegistrationContext) -> tuple[Skill, ...]:
        """The skills of all sources as they are now, by name."""
        return by_precedence(self._source(root) for root in self._roots(context))

    def _roots(self, context: RegistrationContext) -> Iterator[Path]:
        yield from map(expand, self.config.extra_dirs)
        yield context.state_dir.parent.parent / "skills"
        if home := _home():
            yield Path(home) / ".agents" / "skills"
        yield context.workspace / ".agents" / "skills"
        yield context.workspace / "skills"

    def _source(self, root: Path) -> list[Skill]:
        """The skills below one folder, in order of their folders' names."""
        root = _nested(root)
        found = []
        for folder in _candidates(root)[: self.config.max_candidates]:
            skill = self._read(root, folder)
            if skill is not None:
                found.append(skill)
        return found[: self.config.max_per_source]

    def _read(self, root: Path, folder: Path) -> Skill | None:
        file = folder / SKILL_FILE
        try:
            text = read_inside(root, file, self.config.max_file_bytes)
            return None if text is None else parse_skill(text, file)
        except (Refused, BadSkill) as error:
            log.warning("skill %s is left out: %s", file, error)
            return None

    def _reader(self, context: RegistrationContext) -> ToolFunction:
        """The tool's code: a skill is looked up by name, and a file of its folder is read."""

        def run(arguments: Mapping[str, Any], _call: ToolContext) -> ToolResult:
            skills = {s.name: Path(s.file).parent for s in self.find(context)}
            folder = skills.get(arguments["name"])
            if folder is None:
                raise ToolError(f"No skill {arguments['name']!r}; there are: {', '.join(skills)}")
            path = arguments.get("path") or SKILL_FILE
            try:
                text = read_inside(folder, folder / path, self.config.max_file_bytes)
            except ValueError as error:  # refused, or a name that no system takes
                raise ToolError(f"Cannot read {path} of skill {arguments['name']}: {error}") from None
            if text is None:
                raise ToolError(f"Skill {arguments['name']} has no file {path}")
            return ToolResult(text)

        return run


def _to_show(skill: Skill) -> Skill:
    """A skill whose path can be stored and sent, as a folder's name need not be UTF-8."""
    return evolve(skill, file=well_formed(skill.file))


def _nested(root: Path) -> Path:
    """The folder `skills` in a root that keeps its skills there, else the root."""
    inner = root / "skills"
    return inner if any((c / SKILL_FILE).is_file() for c in _candidates(inner)) else root


def _candidates(root: Path) -> Sequence[Path]:
    """Folders that may be skills: the root itself, or those in it that are not hidden."""
    if (root / SKILL_FILE).is_file():
        return [root]
    try:
        names = sorted(os.listdir(root))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):  # a source that is not there
        return []
    except OSError as error:
        log.warning("skills in %s cannot be listed: %s", root, error)
        return []
    return [root / n for n in names if not n.startswith(".") and n != "node_modules" and (root / n).is_dir()]


def _home() -> str:
    try:
        return str(Path.home())
    except RuntimeError:  # a user without a home folder has no skills there
        return ""


_DESCRIPTION = (
    "Read a skill's instructions, or another file of its folder. Use it when a task fits a skill that the prompt lists."
)
_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "description": "The skill's name."},
        "path": {"type": "string", "minLength": 1, "description": f"File in its folder. Default: {SKILL_FILE}."},
    },
    "required": ["name"],
    "additionalProperties": False,
}

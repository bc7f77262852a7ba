"""Stable context: the workspace's own files in the system prompt, in a fixed order and a budget.

The files are read when a session gets its id and kept for it (`lamella.context.snapshots`), so that
no edit changes the prompt of a conversation that is under way, not even after a restart.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import define, evolve, field, frozen

from lamella.config.schema import between, each_of, one_of, setting
from lamella.context.prompt import FILES_ORDER, WORKING
from lamella.context.snapshots import Snapshots
from lamella.context.stable_files import (
    FIXED_FILES,
    MEMORY_FILES,
    Injected,
    cut_lines,
    cut_note,
    cut_signature,
    files_for_session,
    fit_files,
    is_near_limit,
    remember,
)
from lamella.plugins import hookimpl
from lamella.text.inside import Refused, read_inside
from lamella.text.unicode import one_line, well_formed
from lamella.types.hooks import BeforeTurn, PromptContext, PromptFile, PromptSection, SessionEnd
from lamella.types.host import Host

MAX_BYTES = 2 * 1024 * 1024
SEEN_FIELD = "truncationWarningsSeen"
_HEADING = "# Project Context\n\nThese files of the workspace belong to every conversation:"
_SOUL = "SOUL.md says who you are and how you sound: keep to it unless a rule above it says otherwise."

log = logging.getLogger(__name__)


@frozen(slots=True)
class WorkspaceFilesConfig:
    """Settings of the plugin, with their defaults."""

    file_max_chars: int = setting(
        20_000, "Most characters of one file; a longer one is cut in the middle.", check=between(1)
    )
    total_max_chars: int = setting(60_000, "Most characters of all files together.", check=between(1))
    memory_in_groups: bool = setting(False, "Show MEMORY.md in group and channel chats too.")
    truncation_warning: str = setting(
        "once",
        "When the model is told that files were cut: off, once in a session, or always (in the prompt).",
        check=one_of("off", "once", "always"),
    )
    lightweight: tuple[str, ...] = setting(
        (),
        "Triggers (heartbeat, cron) whose turns see no files; a heartbeat sees HEARTBEAT.md.",
        check=each_of("heartbeat", "cron"),
    )


@define
class _Session:
    """What a turn may have to tell: paths of files that have changed on disk, those that the user was told
    of, and all files as shown."""

    changed: set[str] = field(factory=set)
    told: set[str] = field(factory=set)
    files: tuple[Injected, ...] = ()


class WorkspaceFiles:
    """Puts AGENTS.md, SOUL.md and the other stable files into the prompt."""

    name = "workspace-files"
    Config = WorkspaceFilesConfig

    def __init__(self, config: WorkspaceFilesConfig) -> None:
        self.config = config
        self._sessions: dict[str, _Session] = {}  # by session id
        self._snapshots = Snapshots("files", list[PromptFile])

    @hookimpl(tryfirst=True)
    def prompt_files(self, context: PromptContext) -> Iterable[PromptFile]:
        on_disk = read_files(context.workspace)
        files = self._snapshots.of(context, lambda: list(on_disk))
        session = self._sessions.setdefault(context.session_id, _Session())
        session.changed = {f.path for f in files if f not in on_disk}
        shown = files_for_session(
            files,
            kind=context.kind,
            chat_type=context.chat_type,
            trigger=context.trigger,
            lightweight=self.config.lightweight,
            memory_in_groups=self.config.memory_in_groups,
        )
        return (*shown, *context.files)

    @hookimpl
    def prompt_sections(self, context: PromptContext) -> Iterable[PromptSection]:
        safe = [evolve(f, name=one_line(f.name), path=one_line(f.path)) for f in context.files]
        fitted = fit_files(safe, self.config.file_max_chars, self.config.total_max_chars)
        for warning in fitted.warnings:
            log.warning("%s", warning)
        session = self._sessions.setdefault(context.session_id, _Session())
        session.files = fitted.files
        changed = set(map(one_line, session.changed))
        sections = [self._section(n, f, f.file.path in changed) for n, f in enumerate(fitted.files, start=1)]
        return (*self._heading(fitted.files), *sections)

    @hookimpl
    def before_turn(self, event: BeforeTurn, host: Host) -> None:
        session = self._sessions.get(host.turn.session_id)
        if session is not None:
            self._tell_changes(session, host)
            self._tell_cuts(session.files, host)

    def _tell_changes(self, session: _Session, host: Host) -> None:
        """Tell the user, once in each process, that an edit does not count yet. The agent's own notes
        change all the time, and are found by searching."""
        names = [n for p in sorted(session.changed - session.told) if (n := Path(p).name) not in MEMORY_FILES]
        session.told |= session.changed
        if names:
            from lamella.types.events import Notice

            text = f"{', '.join(names)} changed since this session began; a new session takes that up"
            host.emit(Notice("workspace_files_changed", text))

    def _tell_cuts(self, files: tuple[Injected, ...], host: Host) -> None:
        """Tell the model once, as a line of the conversation: the prompt itself stays as it is."""
        signature = cut_signature(files, self.config.file_max_chars, self.config.total_max_chars)
        if signature is None or self.config.truncation_warning != "once":
            return
        digest = hashlib.sha256(signature.encode()).hexdigest()[:16]
        seen = tuple(host.session_entry().get(SEEN_FIELD) or ())
        if digest not in seen:
            host.enqueue_event(_warning(files))
            host.patch_session_entry(**{SEEN_FIELD: list(remember(seen, digest))})

    @hookimpl
    def session_end(self, event: SessionEnd) -> None:
        self._sessions.pop(event.session_id, None)
        self._snapshots.forget(event.session_id)

    def _heading(self, files: tuple[Injected, ...]) -> Iterator[PromptSection]:
        shown = [f for f in files if f.text]
        left_out = [f for f in files if f.truncated and not f.text]
        lines = [_HEADING] if shown else []
        if any(f.file.name.lower() == "soul.md" and f.file.text is not None for f in shown):
            lines.append(_SOUL)
        if self.config.truncation_warning == "always" and any(f.truncated for f in files):
            lines.append(_warning(files))
        if lines:
            yield PromptSection(
                "project-context",
                "\n\n".join(lines),
                FILES_ORDER,
                WORKING,
                note="".join(f"no room for {f.file.name} ({f.raw} characters); " for f in left_out).removesuffix("; "),
                details={"leftOut": [f.file.name for f in left_out]},
            )

    def _section(self, number: int, injected: Injected, changed: bool) -> PromptSection:
        file = injected.file
        size = cut_note(injected) if injected.truncated else f"{injected.raw} characters"
        notes = [
            (file.problem or "missing") if file.text is None else size,
            "near its limit" if is_near_limit(injected, self.config.file_max_chars) else "",
            "changed on disk; counts from the next session" if changed else "",
        ]
        return PromptSection(
            file.name,
            f"## {file.path}\n\n{injected.text}" if injected.text else "",
            FILES_ORDER + number,
            WORKING,
            note="; ".join(filter(None, notes)),
            details={
                "path": file.path,
                "rawCharacters": injected.raw,
                "injectedCharacters": len(injected.text),
                "missing": file.text is None,
                "causes": list(injected.causes),
                "changedOnDisk": changed,
            },
        )


def read_files(workspace: Path) -> tuple[PromptFile, ...]:
    """The workspace's files as they are now, in their order; a memory file only where there is one."""
    present = _names(workspace)
    memory = next((_read(workspace, n) for n in MEMORY_FILES if n in present), None)
    fixed = (_read(workspace, n) for n in FIXED_FILES)
    return (*fixed, memory) if memory is not None and memory.text is not None else tuple(fixed)


def _read(workspace: Path, name: str) -> PromptFile:
    path = workspace / name
    shown = well_formed(str(path))  # a folder's name need not be UTF-8
    try:
        return PromptFile(name, shown, read_inside(workspace, path, MAX_BYTES))
    except Refused as refused:
        log.warning("workspace file %s counts as missing: %s", name, refused)
        return PromptFile(name, shown, problem=str(refused))


def _names(folder: Path) -> set[str]:
    """Names as they are stored, so that a disk that ignores their case gives no file twice."""
    try:
        return set(os.listdir(folder))  # noqa: PTH208
    except FileNotFoundError:  # no workspace: all files are missing
        return set()
    except OSError as error:
        log.warning("workspace %s cannot be listed: %s", folder, error)
        return set()


def _warning(files: tuple[Injected, ...]) -> str:
    lines = "\n".join(f"- {line}" for line in cut_lines(files))
    return f"Some workspace files were cut in the system prompt; read them where you need the rest.\n{lines}"

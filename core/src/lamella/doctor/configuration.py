"""Checks of the configuration, the plugins and the memory that they bring."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.config.budget import budget_problems
from lamella.config.edit import unset_value
from lamella.doctor.finding import FIX, Finding, Level
from lamella.errors import ConfigError, LamellaError, Problem, UsageError
from lamella.text.days import file_stamp
from lamella.text.files import write_atomic
from lamella.types.memory import ProbingMemory

if TYPE_CHECKING:
    from lamella.runtime import Runtime

_PIP = re.compile(r"pip install [\w\-\[\]'.]+")
_UNSET = re.compile(r"\b([A-Z][A-Z0-9_]+) is not set|export ([A-Z][A-Z0-9_]+)=")


def configuration_problems(runtime: Runtime) -> list[Problem]:
    """All problems of the configuration and of the sections of plugins, warnings too."""
    try:
        found = list(runtime.config.problems)
    except ConfigError as error:
        return list(error.problems)
    names = [r.name for r in runtime.catalog.records]
    names_a_plugin = ("plugins.config", "plugins.allow", "plugins.deny")
    found += [p for p in runtime.catalog.problems if p.level == "error" or p.path.startswith(names_a_plugin)]
    found += [
        Problem(f"plugins.config.{name}", "no plugin of this name is installed", level="warning")
        for name in runtime.settings.plugins.config
        if name not in names
    ]
    found += runtime.hooks.problems
    try:
        _ = runtime.estimate
    except ConfigError as error:
        found += error.problems
    return [*found, *_window_problems(runtime)]


def _window_problems(runtime: Runtime) -> list[Problem]:
    """Settings that the window of the chosen model does not allow; none when it cannot be opened."""
    try:
        window = runtime.environment.window(runtime.model)
    except LamellaError:  # a missing key or package is told when the model is used
        return []
    return budget_problems(runtime.settings.compaction, window, runtime.config.origin)


def check_configuration(runtime: Runtime) -> Iterator[Finding]:
    file = runtime.options.config_file or runtime.paths.config_file
    for problem in configuration_problems(runtime):
        key = problem.path.partition("[")[0]
        if _is_about_a_plugin(problem):
            continue  # told by the check of plugins
        where = " ".join(part for part in (problem.origin or str(file), problem.path) if part)
        in_file = bool(key) and problem.origin in ("", str(file))
        if in_file and problem.level == "error":
            yield Finding("error", where, problem.message, FIX, partial(_unset, file, key))
            continue
        named = f" --config {file}" if runtime.options.config_file else ""
        unset = f"lamella config unset {key}{named}" if in_file else _unset_variable(problem.origin)
        yield Finding(_level(problem), where, problem.message, _install(problem.message) or unset)


def _is_about_a_plugin(problem: Problem) -> bool:
    return problem.path.startswith(("plugin ", "plugins.slots", "LAMELLA_"))


def _unset_variable(origin: str) -> str:
    """The command for a setting that an environment variable makes; other files are edited by hand."""
    _, _, name = origin.partition("environment ")
    return f"unset {name}" if name else ""


def _level(problem: Problem) -> Level:
    return "error" if problem.level == "error" else "warning"


def _unset(file: Path, key: str) -> str:
    """Remove a setting that cannot be used, so that its default counts."""
    backup = file.with_name(f"{file.name}.bak.{file_stamp()}")
    write_atomic(backup, file.read_bytes(), mode=0o600)
    if not unset_value(file, key):
        backup.unlink()
        raise UsageError(f"{key} is not set in {file}")
    return f"{key} is unset, its default counts; the old file is {backup.name}"


def check_plugins(runtime: Runtime) -> Iterator[Finding]:
    failed = {f"plugin {r.name}": r for r in runtime.catalog.records if r.state == "failed"}
    for where, record in failed.items():
        denied = json.dumps([*runtime.settings.plugins.deny, record.name])
        yield Finding("error", where, record.reason, f"lamella config set plugins.deny '{denied}'")
    for problem in (*runtime.catalog.problems, *runtime.hooks.problems):
        if _is_about_a_plugin(problem) and problem.path not in failed:
            command = _install(problem.message) or "lamella plugins list"
            yield Finding(_level(problem), problem.path, problem.message, command)


def _install(message: str) -> str:
    """The command that installs what is missing, when the message names it."""
    found = _PIP.search(message)
    return found[0] if found else ""


def check_memory(runtime: Runtime) -> Iterator[Finding]:
    """Whether memory can answer. An index that is behind is none of it: the next search brings it up to date."""
    if runtime.settings.plugins.slots.memory == "none" or runtime.catalog.slot("memory") is None:
        return  # without memory on purpose; a missing plugin is told by its own check
    where = f"memory backend {runtime.settings.memory.backend}"
    try:
        memory = runtime.require_memory()
        if isinstance(memory, ProbingMemory):
            memory.probe()
        facts = memory.status()
    except LamellaError as error:
        command = _command(error.hint)
        hint = f"; {error.hint}" if error.hint and not command else ""
        text = str(error).removeprefix(f"{runtime.settings.memory.backend}: ")
        yield Finding("error", where, f"{text}{hint}", command or "lamella plugins list")
        return
    where = f"memory backend {facts.get('backend') or runtime.settings.memory.backend}"
    if problem := facts.get("problem"):
        yield Finding("warning", where, str(problem), _command(str(problem)) or "lamella memory status")
    if failed := facts.get("lastError"):
        yield Finding("warning", where, f"the last sync: {failed}", "lamella memory index")


def check_workspace(runtime: Runtime) -> Iterator[Finding]:
    folder = runtime.workspace
    if folder != runtime.paths.workspace(runtime.agent_id) and not folder.is_dir():
        yield Finding("error", str(folder), "the workspace is not there", f"lamella init {folder}")


def _command(text: str) -> str:
    """The command that a hint or a problem asks for, if it asks for one."""
    if unset := _UNSET.search(text):
        return f"export {unset[1] or unset[2]}=..."
    return _install(text) or (text if text.startswith("lamella ") else "")

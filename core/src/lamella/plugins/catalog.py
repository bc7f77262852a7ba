"""Finding plugins: entry points, the ones built into the core, and what became of each.

One plugin that cannot be imported, hangs at it, has a wrong config or a misspelt hook is reported with
its name and left out; it never takes the program down.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs
from attrs import field, frozen

from lamella.config.schema import PluginsSection
from lamella.config.secrets import shown
from lamella.config.structure import near_match, structure
from lamella.errors import Problem
from lamella.plugins.implementations import implemented_hooks, objection
from lamella.plugins.threads import Escaped, OutOfTime, describe, run_with_limit

GROUP = "lamella.plugins"
SLOTS = ("memory",)
CORE = "lamella"

log = logging.getLogger(__name__)


class Source(Protocol):
    """Something that yields a plugin when it is loaded; `importlib.metadata.EntryPoint` is one."""

    @property
    def name(self) -> str: ...

    def load(self) -> Any: ...


@frozen(slots=True)
class PluginRecord:
    """What is known of one plugin. `state`: on, off (with a reason) or failed (with an error).

    `prompts`: whether it may add text to prompts.
    """

    name: str
    state: str
    reason: str = ""
    version: str = ""
    distribution: str = ""
    slot: str = ""
    hooks: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(factory=dict)
    priority: int = 0
    builtin: bool = False
    prompts: bool = True
    plugin: Any = field(default=None, repr=False, eq=False)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "state": self.state,
            "reason": self.reason,
            "version": self.version,
            "distribution": self.distribution,
            "slot": self.slot,
            "hooks": list(self.hooks),
            "config": dict(self.config),
            "priority": self.priority,
            "builtin": self.builtin,
            "prompts": self.prompts,
        }


@frozen(slots=True)
class Catalog:
    """All plugins that were found, with the problems of choosing and loading them."""

    records: tuple[PluginRecord, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def active(self) -> tuple[PluginRecord, ...]:
        """Loaded plugins in calling order: priority, highest first, then name."""
        on = [r for r in self.records if r.state == "on"]
        return tuple(sorted(on, key=lambda r: (-r.priority, r.name)))

    def slot(self, name: str) -> PluginRecord | None:
        return next((r for r in self.active if r.slot == name), None)


@frozen(slots=True)
class _Found:
    name: str
    source: Source
    version: str
    distribution: str
    builtin: bool = False


def load_plugins(
    settings: PluginsSection,
    *,
    only: Sequence[str] | None = None,
    builtins: Mapping[str, Any] | None = None,
    extra: Iterable[Any] = (),
    sources: Iterable[Source] | None = None,
    slot_chosen: bool = True,
) -> Catalog:
    """Choose and load plugins.

    `only` is the exact list of LAMELLA_PLUGINS (empty: none; None: as configured). `extra` are
    ready plugin objects of an embedding program, always on. `sources` replaces entry points.
    `slot_chosen` is False when the memory slot only has its default: then nothing is wrong with
    having no memory installed.
    """
    problems: list[Problem] = []
    found = [_Found(name, _Ready(name, p), _own_version(), CORE, builtin=True) for name, p in (builtins or {}).items()]
    found += _discover(entry_points() if sources is None else sources, {f.name for f in found}, problems)
    if only is not None:
        problems += [
            Problem("LAMELLA_PLUGINS", f"no plugin {n!r} is installed{near_match(n, [f.name for f in found])}")
            for n in only
            if n not in {f.name for f in found}
        ]
    problems += [
        Problem(
            f"plugins.{key}", f"no plugin {n!r} is installed{near_match(n, [f.name for f in found])}", level="warning"
        )
        for key, names in (
            ("allow", settings.allow),
            ("deny", settings.deny),
            ("without_prompt_text", settings.without_prompt_text),
        )
        for n in names
        if n not in {f.name for f in found}
    ]
    records = [_decide_and_load(f, settings, only, problems) for f in found]
    for plugin in extra:
        records.append(_load_given(plugin, {r.name for r in records if r.state == "on"}, settings, problems))
    _check_slots(records, settings, only, problems, "error" if slot_chosen else "warning")
    return Catalog(tuple(records), tuple(problems))


def entry_points() -> list[importlib.metadata.EntryPoint]:
    """Those of the group by name. Of several with one name the one of `lamella-NAME` comes first: what
    lamella tells people to install."""
    found = importlib.metadata.entry_points(group=GROUP)
    return sorted(found, key=lambda e: (e.name, not _is_namesake(e), e.value))


def _is_namesake(entry: importlib.metadata.EntryPoint) -> bool:
    name = entry.dist.name if entry.dist is not None else ""
    return re.sub(r"[-_.]+", "-", name).lower() == f"{CORE}-{entry.name}"


def _own_version() -> str:
    """The core's version, which its built-in plugins share; empty when it runs without being installed."""
    try:
        return importlib.metadata.version(CORE)
    except importlib.metadata.PackageNotFoundError:
        return ""


@frozen(slots=True)
class _Ready:
    name: str
    plugin: Any

    def load(self) -> Any:
        return self.plugin


def _discover(sources: Iterable[Source], taken: set[str], problems: list[Problem]) -> list[_Found]:
    found: list[_Found] = []
    for source in sources:
        dist = getattr(source, "dist", None)
        name = dist.name if dist is not None else ""
        if source.name in taken:
            problems.append(
                Problem(f"plugin {source.name}", f"the name is taken; the one from {name or 'elsewhere'} is ignored")
            )
            continue
        taken.add(source.name)
        found.append(_Found(source.name, source, dist.version if dist is not None else "", name))
    return found


def _off(found: _Found, reason: str) -> PluginRecord:
    return PluginRecord(found.name, "off", reason, found.version, found.distribution, builtin=found.builtin)


def _failed(found: _Found, reason: str) -> PluginRecord:
    return PluginRecord(found.name, "failed", reason, found.version, found.distribution, builtin=found.builtin)


def _decide_and_load(
    found: _Found, settings: PluginsSection, only: Sequence[str] | None, problems: list[Problem]
) -> PluginRecord:
    """First rule that applies: the exact list, deny, disabled, the slot's own, allow."""
    name = found.name
    if only is not None and not found.builtin and name not in only:
        return _off(found, "not in LAMELLA_PLUGINS")
    if name in settings.deny:
        return _off(found, "in plugins.deny")
    if not settings.enabled and not found.builtin:
        return _off(found, "plugins.enabled is false")
    if settings.allow and name not in (*settings.allow, settings.slots.memory) and not found.builtin:
        return _off(found, "not in plugins.allow")
    return _load(found, settings, problems) if found.builtin else _load_in_time(found, settings, problems)


def _load_in_time(found: _Found, settings: PluginsSection, problems: list[Problem]) -> PluginRecord:
    """As `_load`, in a thread of its own: what hangs at import is left behind, with all that it reports."""
    own: list[Problem] = []
    seconds = settings.load_timeout_seconds
    try:
        record = run_with_limit(lambda: _load(found, settings, own), seconds)
    except OutOfTime:
        limit = f"{seconds:g} s (plugins.load_timeout_seconds)"
        text = f"cannot be loaded: it was not ready within {limit}; plugins.deny leaves it out at once"
    except Escaped as error:  # such as KeyboardInterrupt, which asks more than this thread to end
        text = f"cannot be loaded: {describe(error)}"
    else:
        problems += own
        return record
    log.warning("plugin %s %s", found.name, text)
    problems.append(Problem(f"plugin {found.name}", text))
    return _failed(found, text)


def _load(found: _Found, settings: PluginsSection, problems: list[Problem]) -> PluginRecord:
    """As `_load_unguarded`; whatever the plugin's own code raises becomes a failed record."""
    try:
        return _load_unguarded(found, settings, problems)
    except (Exception, SystemExit) as error:
        log.warning("plugin %s cannot be loaded", found.name, exc_info=True)
        text = f"cannot be loaded: {describe(error)}"
        problems.append(Problem(f"plugin {found.name}", text))
        return _failed(found, text)


def _load_given(plugin: Any, taken: Collection[str], settings: PluginsSection, problems: list[Problem]) -> PluginRecord:
    """A plugin that a program hands over."""
    name = plugin_name(plugin)
    found = _Found(name, _Ready(name, plugin), "", "")
    if name not in taken:
        return _load(found, settings, problems)
    text = "the name is taken; the plugin that the program gives is left out"
    problems.append(Problem(f"plugin {name}", text))
    return _failed(found, text)


def _load_unguarded(found: _Found, settings: PluginsSection, problems: list[Problem]) -> PluginRecord:
    def failed(text: str) -> PluginRecord:
        problems.append(Problem(f"plugin {found.name}", text))
        return _failed(found, text)

    try:
        target = found.source.load()
    except (Exception, SystemExit) as error:
        log.warning("plugin %s cannot be imported", found.name, exc_info=True)
        return failed(f"cannot be imported: {describe(error)}")
    slot = getattr(target, "slot", "") or ""
    if slot and slot not in SLOTS:
        return failed(f"fills an unknown slot {slot!r}; slots are: {', '.join(SLOTS)}")
    if slot and getattr(settings.slots, slot) != found.name:
        return _off(found, f"slot {slot} is given to {getattr(settings.slots, slot)!r}")
    config, config_problems = _configure(target, found.name, settings)
    problems += config_problems
    errors = [p for p in config_problems if p.level == "error"]
    if errors:
        return _failed(found, str(errors[0]))
    try:
        plugin = _instance(target, config)
    except (Exception, SystemExit) as error:
        log.warning("plugin %s cannot be started", found.name, exc_info=True)
        return failed(f"cannot be started: {describe(error)}")
    if wrong := objection(plugin):
        return failed(wrong)
    priority = getattr(plugin, "priority", None) or 0
    if not isinstance(priority, int):
        return failed(f"has the priority {priority!r:.100}, expected a whole number")
    hooks = implemented_hooks(plugin)
    if not hooks:
        text = f"implements no hooks, so it does nothing{_not_an_object(plugin)}; methods that are hooks need @hookimpl"
        problems.append(Problem(f"plugin {found.name}", text, level="warning"))
    version = found.version or str(getattr(plugin, "version", "") or "")
    return PluginRecord(
        found.name,
        "on",
        version=version,
        distribution=found.distribution,
        slot=slot,
        hooks=hooks,
        config=shown("", attrs.asdict(config)) if config is not None else {},
        priority=priority,
        builtin=found.builtin,
        prompts=found.name not in settings.without_prompt_text,
        plugin=plugin,
    )


def _configure(target: Any, name: str, settings: PluginsSection) -> tuple[Any, list[Problem]]:
    """The plugin's config object (None when it has no `Config`), and what is wrong with its section."""
    config_class = getattr(target, "Config", None)
    section = settings.config.get(name, {})
    path = f"plugins.config.{name}"
    if config_class is None:
        return None, [Problem(path, "this plugin has no settings", level="warning")] if section else []
    if not inspect.isclass(target):
        text = "these settings do not reach the plugin, which is made already; give its class instead of an object"
        return None, [Problem(path, text, level="warning")] if section else []
    if not attrs.has(config_class):
        return None, [Problem(f"plugin {name}", f"its Config is {config_class!r:.100}, expected an attrs class")]
    return structure(config_class, section, path=path)


def _instance(target: Any, config: Any) -> Any:
    """A plugin class becomes an object, made with its config; anything else is one already."""
    if not inspect.isclass(target):
        return target
    make: Callable[..., Any] = target
    return make(config) if config is not None else make()


def _not_an_object(plugin: Any) -> str:
    """For something that was likely not meant to be a plugin: what it is."""
    plain = plugin is None or isinstance(plugin, str | int | float) or inspect.isroutine(plugin)
    return f" (it is a {type(plugin).__name__}, expected a class or an object)" if plain else ""


def plugin_name(plugin: Any) -> str:
    """The name of a plugin object: its `name`, else its class or module name."""
    name = getattr(plugin, "name", None)
    if isinstance(name, str) and name:
        return name
    return str(getattr(plugin, "__name__", type(plugin).__name__)).rpartition(".")[2]


def _check_slots(
    records: Sequence[PluginRecord],
    settings: PluginsSection,
    only: Sequence[str] | None,
    problems: list[Problem],
    level: str,
) -> None:
    """A slot that names a plugin which is not there is said once, with what to install."""
    wanted = settings.slots.memory
    if wanted == "none" or not settings.enabled or only is not None:
        return
    found = next((r for r in records if r.name == wanted), None)
    if found is None:
        names = sorted(r.name for r in records if not r.builtin)
        text = f"plugin {wanted!r} is not installed{near_match(wanted, names)}; run: pip install lamella-{wanted}"
        problems.append(Problem("plugins.slots.memory", text, level=level))
    elif found.state == "on" and found.slot != "memory":
        text = f"plugin {wanted!r} does not fill the slot memory"
        problems.append(Problem("plugins.slots.memory", text))

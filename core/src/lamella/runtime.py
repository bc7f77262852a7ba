"""The front door: configuration, plugins and stores of one agent, and its sessions.

    async with Runtime.open(workspace="notes") as runtime:
        result = await runtime.ask("What did we decide about the boiler?")
        print(result.text)

Everything is opened when it is first needed, and its code is imported then: a table of sessions loads
no plugin, a search of memory loads no agent, and a turn without memory opens no database.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attrs import evolve, frozen

from lamella.errors import ConfigError, MemoryUnavailable, Problem, UsageError
from lamella.paths import Paths, expand
from lamella.sessions.keys import DEFAULT_AGENT, SessionKey, check_agent_id, parse_key

if TYPE_CHECKING:
    from types import TracebackType

    from lamella.agent.environment import Confirm, Environment
    from lamella.agent.session import Listener
    from lamella.agent.turn import TurnResult
    from lamella.config.load import Config
    from lamella.config.schema import AgentSection, Settings
    from lamella.context.assembly import PromptMaker
    from lamella.memory.writer import MemoryWriter
    from lamella.plugins.catalog import Catalog
    from lamella.plugins.hooks import Hooks
    from lamella.session import Session
    from lamella.sessions.index import IndexDamage
    from lamella.sessions.lanes import Lanes
    from lamella.sessions.routing import Chat
    from lamella.sessions.store import SessionStore
    from lamella.text.estimate import Estimator
    from lamella.types import hooks as h
    from lamella.types.events import Notice, PluginFault
    from lamella.types.host import Trigger
    from lamella.types.memory import BackendRegistration, EmbedderRegistration, MemoryService
    from lamella.types.messages import ImageBlock
    from lamella.types.model import Model, ModelChoice, ModelProvider, ThinkingLevel
    from lamella.types.tools import Tool

PLUGINS_VARIABLE = "LAMELLA_PLUGINS"
MODEL_VARIABLE = "LAMELLA_MODEL"
WORKSPACE_VARIABLE = "LAMELLA_WORKSPACE"

log = logging.getLogger(__name__)


@frozen(slots=True)
class Options:
    """What a caller says beside the configuration."""

    agent_id: str = DEFAULT_AGENT
    workspace: Path | None = None
    model: str | Model = ""
    system_prompt: str = ""
    config_file: Path | None = None
    plugins: tuple[Any, ...] = ()
    tools: tuple[Tool, ...] = ()
    overrides: Mapping[str, Any] = {}
    without_plugins: tuple[str, ...] = ()
    environ: Mapping[str, str] | None = None
    confirm: Confirm | None = None
    strict: bool = False
    builtin_config: bool = False


class Runtime:
    """One agent's configuration, plugins, memory and sessions."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.environ = os.environ if options.environ is None else options.environ
        self.paths = Paths.from_environment(self.environ)
        self.notices: list[Notice] = []
        self.listeners: list[Listener] = []
        self._memory_open = False

    @classmethod
    def open(
        cls,
        *,
        workspace: str | Path | None = None,
        agent: str = DEFAULT_AGENT,
        model: str | Model = "",
        system_prompt: str = "",
        config: str | Path | None = None,
        plugins: Iterable[Any] = (),
        tools: Iterable[Tool] = (),
        settings: Mapping[str, Any] | None = None,
        without_plugins: Iterable[str] = (),
        environ: Mapping[str, str] | None = None,
        confirm: Confirm | None = None,
    ) -> Runtime:
        """Open an agent.

        `model` is `provider/model` or a `Model`; empty: as configured. `plugins` are plugin objects
        beside the installed ones, `tools` tools beside theirs, `settings` dotted config keys with
        values over those of the file, `without_plugins` names plugins to leave out. `confirm` is asked
        before tools that write.
        """
        return cls(
            Options(
                agent_id=check_agent_id(agent),
                workspace=expand(workspace) if workspace is not None else None,
                model=model,
                system_prompt=system_prompt,
                config_file=expand(config) if config is not None else None,
                plugins=tuple(plugins),
                tools=tuple(tools),
                overrides=dict(settings or {}),
                without_plugins=tuple(without_plugins),
                environ=environ,
                confirm=confirm,
            )
        )

    # --- lazily opened parts -----------------------------------------------------------------------

    @property
    def agent_id(self) -> str:
        return self.options.agent_id

    @cached_property
    def config(self) -> Config:
        """The configuration of this agent. Raises `ConfigError`."""
        from lamella.config.load import load_config

        options = self.options
        load: Callable[[Path | None], Config] = lambda workspace: load_config(  # noqa: E731
            self.paths,
            file=options.config_file,
            workspace=workspace,
            environ=self.environ,
            overrides=options.overrides,
            strict=options.strict,
            builtin_only=options.builtin_config,
        )
        first = load(None)
        workspace = self._workspace(first)
        if workspace.exists() and not workspace.is_dir():
            raise UsageError(f"workspace {workspace} is a file, expected a folder")
        return load(workspace)

    @property
    def settings(self) -> Settings:
        return self.config.settings

    @property
    def agent(self) -> AgentSection:
        return self.config.agent(self.agent_id)

    def _workspace(self, config: Config) -> Path:
        if self.options.workspace is not None:
            return self.options.workspace
        from_variable = self.environ.get(WORKSPACE_VARIABLE, "").strip()
        if from_variable:
            return expand(from_variable)
        return self.paths.workspace(self.agent_id, config.agent(self.agent_id).workspace)

    @cached_property
    def workspace(self) -> Path:
        return self._workspace(self.config)

    def require_workspace(self) -> Path:
        """The workspace folder. The default one is made when it is missing; raises `UsageError` for
        another one, which may be misspelt."""
        folder = self.workspace
        if folder == self.paths.workspace(self.agent_id):
            folder.mkdir(parents=True, exist_ok=True)
        elif not folder.is_dir():
            raise UsageError(
                f"workspace {folder} does not exist", hint="`lamella init DIR` makes one; --workspace names it."
            )
        return folder

    @property
    def state_dir(self) -> Path:
        return self.paths.agent_dir(self.agent_id)

    @property
    def sessions_dir(self) -> Path:
        """The folder of this agent's transcripts."""
        return self.paths.sessions_dir(self.agent_id, self.settings.session.store)

    @cached_property
    def store(self) -> SessionStore:
        from lamella.sessions.store import SessionStore

        timeout = self.settings.session.lock_timeout_seconds
        return SessionStore(self.sessions_dir, lock_timeout=timeout, listener=self._index_damaged)

    @cached_property
    def lanes(self) -> Lanes:
        """What keeps the turns of each session in order."""
        from lamella.sessions.lanes import Lanes

        return Lanes()

    @cached_property
    def catalog(self) -> Catalog:
        from lamella.context.builtin import builtin_plugins
        from lamella.plugins.catalog import load_plugins

        listed = self.environ.get(PLUGINS_VARIABLE)
        only = None if listed is None else [n.strip() for n in listed.split(",") if n.strip()]
        section = self.settings.plugins
        return load_plugins(
            evolve(section, deny=(*section.deny, *self.options.without_plugins)),
            only=only,
            builtins=builtin_plugins(),
            extra=self.options.plugins,
            slot_chosen=self.config.origin("plugins.slots.memory") != "default",
        )

    @cached_property
    def hooks(self) -> Hooks:
        from lamella.plugins.hooks import Hooks

        hooks = Hooks(self.catalog, timeouts=self.settings.hooks.timeouts, on_fault=self._fault)
        for problem in (*self.catalog.problems, *hooks.problems):
            self.notify("plugin_problem", str(problem))
        return hooks

    @cached_property
    def memory_backends(self) -> dict[str, BackendRegistration]:
        """Memory backends on offer, by name; none of them is opened."""
        return self._named(self.hooks.register_memory_backends(self._registration()), "memory backend")

    @cached_property
    def memory(self) -> MemoryService | None:
        """Long-term memory of the plugin in its slot; None without one."""
        from lamella.types.hooks import MemoryContext

        chosen, backends = self.settings.memory.backend, self.memory_backends
        context = MemoryContext(
            self.agent_id,
            self.workspace,
            self.state_dir,
            self.agent.timezone,
            chosen,
            backends,
            self.embedders,
            sessions_dir=self.sessions_dir,
        )
        service = self.hooks.open_memory(context)
        self._memory_open = service is not None
        return service

    def require_memory(self) -> MemoryService:
        """Long-term memory. Raises `MemoryUnavailable` that says what to install."""
        from lamella.memory.installing import distribution_of

        if self.memory is not None:
            return self.memory
        slot = self.settings.plugins.slots.memory
        if slot == "none":
            raise MemoryUnavailable("memory is switched off: plugins.slots.memory is none")
        record = next((r for r in self.catalog.records if r.name == slot), None)
        backend = self.settings.memory.backend
        is_on = record is not None and record.state == "on"
        if is_on and self.memory_backends and backend not in self.memory_backends:
            on_offer = ", ".join(sorted(self.memory_backends))
            raise MemoryUnavailable(
                f"memory backend {backend!r} is not installed (on offer: {on_offer})",
                hint=f"pip install {distribution_of(backend)}, or set memory.backend to one on offer",
            )
        if record is not None:
            why = record.reason or "it gave no memory"
            raise MemoryUnavailable(f"the memory plugin {slot!r} is {record.state}: {why}")
        raise MemoryUnavailable("no memory is installed", hint=f"pip install lamella-{slot}")

    @cached_property
    def embedders(self) -> dict[str, EmbedderRegistration]:
        return self._named(self.hooks.register_embedders(self._registration()), "embedder")

    @cached_property
    def writer(self) -> MemoryWriter:
        from lamella.memory.writer import MemoryWriter

        return MemoryWriter(self.workspace, self.state_dir, self.agent.timezone)

    @cached_property
    def tools(self) -> dict[str, Tool]:
        """The tools on offer, by name."""
        from lamella.tools.builtin import builtin_tools
        from lamella.tools.registry import ToolRegistry

        section = self.settings.tools
        own = builtin_tools(self.workspace, exec_enabled=section.exec, memory_writer=self.writer, sessions=self.store)
        registry = ToolRegistry(own)
        found = [evolve(tool, owner=plugin) for plugin, tool in self.hooks.register_tools(self._registration(True))]
        wanted = frozenset(section.optional)
        found = [tool for tool in found if not tool.optional or {tool.name, tool.owner} & wanted]
        for tool in (*self.options.tools, *found):
            rejected = registry.register(tool)
            if rejected is not None:
                self.notify("tool_skipped", str(rejected))
        return {t.name: t for t in registry if t.name not in section.deny}

    @cached_property
    def providers(self) -> dict[str, ModelProvider]:
        """Model providers by name: built in, configured, and of plugins."""
        from lamella.models.registry import builtin_providers

        providers = builtin_providers(self.settings.models.providers)
        return {
            **providers,
            **self._named(self.hooks.register_models(self._registration()), "model provider", providers),
        }

    @cached_property
    def model_choice(self) -> ModelChoice:
        """Which model runs and why. Raises `UsageError` for an unknown one."""
        from lamella.models.registry import choose_model

        flag = self.options.model if isinstance(self.options.model, str) else ""
        from_variable = self.environ.get(MODEL_VARIABLE, "").strip()
        configured = self.agent.model if self.agent.model != from_variable else ""
        choice = choose_model(flag, from_variable, configured, self.environ, self.providers)
        if choice.note:
            self.notify("model_choice", choice.note)
        return choice

    @cached_property
    def model(self) -> Model:
        if not isinstance(self.options.model, str):
            return self.options.model
        return self._make(self.model_choice)

    def open_model(self, reference: str) -> Model:
        """A model by `provider/model`."""
        from lamella.models.registry import choose_model

        return self._make(choose_model(reference, "", "", self.environ, self.providers))

    def _make(self, choice: ModelChoice) -> Model:
        from lamella.models.registry import make_model

        models = self.settings.models
        return make_model(
            choice, self.providers, models.providers, self.environ, overflow_patterns=models.overflow_patterns
        )

    @cached_property
    def estimate(self) -> Estimator:
        """The configured token estimator. Raises `ConfigError` for an unknown one."""
        from lamella.config.structure import near_match
        from lamella.text.estimate import ESTIMATORS

        known = dict(ESTIMATORS)
        found = self._named(self.hooks.register_token_estimators(self._registration()), "token estimator", known)
        known.update((name, estimator.estimate) for name, estimator in found.items())
        name = self.settings.context.estimator
        if name not in known:
            text = f"unknown estimator {name!r}{near_match(name, list(known))}; there are: {', '.join(known)}"
            raise ConfigError([Problem("context.estimator", text, self.config.origin("context.estimator"))])
        return known[name]

    @cached_property
    def prompts(self) -> PromptMaker:
        """What makes the system prompts of sessions."""
        from lamella.context.assembly import PromptMaker
        from lamella.context.prompt import as_mode

        tools = tuple(t.spec for t in self.tools.values())
        mode = self.settings.context.prompt_mode
        return PromptMaker(self.hooks, self._registration(True), self.agent, tools, as_mode(mode))

    @cached_property
    def commands(self) -> dict[str, h.Command]:
        """Slash commands of plugins, by name."""
        from lamella.types.hooks import OWN_COMMANDS

        return self._named(self.hooks.register_commands(self._registration(True)), "command", OWN_COMMANDS)

    @cached_property
    def environment(self) -> Environment:
        from lamella.agent.environment import Environment

        return Environment(
            agent_id=self.agent_id,
            settings=self.settings,
            agent=self.agent,
            workspace=self.workspace,
            hooks=self.hooks,
            tools=self.tools,
            prompts=self.prompts,
            estimate=self.estimate,
            make_model=self.open_model,
            writer=self.writer,
            system_prompt=self.options.system_prompt,
            confirm=self.options.confirm,
        )

    def _registration(self, with_memory: bool = False) -> h.RegistrationContext:
        from lamella.types.hooks import RegistrationContext

        memory = self.memory if with_memory else None
        return RegistrationContext(self.agent_id, self.workspace, self.state_dir, self.agent.timezone, memory)

    def _named(self, found: Iterable[tuple[str, Any]], what: str, taken: Iterable[str] = ()) -> dict[str, Any]:
        """Registrations by name; the first of a name keeps it, others are reported."""
        named: dict[str, Any] = {}
        taken = frozenset(taken)
        for plugin, registration in found:
            if registration.name in named or registration.name in taken:
                self.notify("name_taken", f"{what} {registration.name!r} of {plugin}: the name is taken")
            else:
                named[registration.name] = registration
        return named

    # --- sessions ------------------------------------------------------------------------------------

    def key(self, text: str = "") -> SessionKey:
        """A session key of this agent; empty: its main session. Raises `UsageError`."""
        key = parse_key(text or f"agent:{self.agent_id}:main")
        if key.agent_id != self.agent_id:
            raise UsageError(
                f"session key {key.text!r} belongs to agent {key.agent_id!r}, this is {self.agent_id!r}",
                hint=f"Use --agent {key.agent_id}.",
            )
        return key

    def chat_key(self, chat: Chat) -> SessionKey:
        """The session key of a chat, as session.dm_scope and session.identity_links have it. Raises `UsageError`."""
        from lamella.sessions.routing import DmScope, chat_key

        section = self.settings.session
        scope = cast("DmScope", section.dm_scope)
        return chat_key(chat, self.agent_id, dm_scope=scope, identity_links=section.identity_links)

    def session(
        self, key: str = "", *, new: bool = False, trigger: Trigger = "user", thinking: ThinkingLevel | None = None
    ) -> Session:
        """A session by key; `new` gives the key a new session id at its first turn."""
        from lamella.session import Session

        return Session(self, self.key(key), new=new, trigger=trigger, thinking=thinking)

    async def ask(
        self, text: str, *, key: str = "", new: bool = False, images: Sequence[ImageBlock] = ()
    ) -> TurnResult:
        """One turn on a session."""
        async with self.session(key, new=new) as session:
            return await session.prompt(text, images=images)

    def maintain(self, active: SessionKey) -> None:
        """Do what session.maintenance asks for, if its mode is `enforce`; the main session and the active one stay."""
        section = self.settings.session.maintenance
        if section.mode != "enforce":
            return
        from lamella.sessions.maintenance import Limits
        from lamella.sessions.upkeep import maintain

        done = maintain(self.store, Limits.of(section), {self.key().text, active.text})
        failed = [d.problem for d in done if d.problem]
        if done:
            self.notify("sessions_maintained", f"{len(done) - len(failed)} sessions and files put aside or removed")
        for problem in failed:
            self.notify("maintenance_failed", problem)

    # --- notices and closing ---------------------------------------------------------------------------

    def notify(self, code: str, message: str) -> None:
        """Tell the user something that is not an error: kept in `notices`, and told to listeners."""
        from lamella.types.events import Notice

        notice = Notice(code, message)
        log.info("notice %s: %s", code, message)
        self.notices.append(notice)
        for listener in self.listeners:
            listener(notice)

    def _fault(self, fault: PluginFault) -> None:
        for listener in self.listeners:
            listener(fault)

    def _index_damaged(self, damage: IndexDamage) -> None:
        kept = f"; the damaged file is kept as {damage.kept_as.name}" if damage.kept_as else ""
        self.notify("index_recovered", f"{damage.message}: {damage.recovered} sessions recovered{kept}")

    def close(self) -> None:
        """Close memory. May be called more than once. What goes wrong then is told: the work is done."""
        if not self._memory_open or self.memory is None:
            return
        self._memory_open = False
        try:
            self.memory.close()
        except Exception as error:
            from lamella.plugins.threads import describe
            from lamella.types.events import PluginFault

            log.warning("memory could not be closed", exc_info=True)
            owner = self.catalog.slot("memory")
            self._fault(PluginFault(owner.name if owner else "", "open_memory", f"closing: {describe(error)}"))

    async def __aenter__(self) -> Runtime:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.close)

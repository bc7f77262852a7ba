"""Every setting of the core, with its default. Sections of plugins live in their own classes.

Keys are TOML paths: `compaction.reserve_tokens` is `reserve_tokens` in `[compaction]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import Attribute, Factory, field, frozen
from attrs.validators import optional

from lamella.config.units import parse_duration, parse_size
from lamella.errors import UsageError
from lamella.text.days import zone
from lamella.types.model import THINKING_LEVELS
from lamella.types.model_settings import ProviderSettings

Check = Callable[[Any, "Attribute[Any]", Any], None]


def between(low: float, high: float | None = None) -> Check:
    """A validator: low <= value (<= high)."""

    def check(_instance: Any, _attribute: Attribute[Any], value: Any) -> None:
        if value < low or (high is not None and value > high):
            raise ValueError(f"expected {low:g} to {high:g}" if high is not None else f"expected {low:g} or more")

    return check


def one_of(*allowed: str) -> Check:
    """A validator: one of the given words."""

    def check(_instance: Any, _attribute: Attribute[Any], value: Any) -> None:
        if value not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")

    return check


def each_of(*allowed: str) -> Check:
    """A validator: a list of the given words."""

    def check(_instance: Any, _attribute: Attribute[Any], value: Any) -> None:
        if not set(value) <= set(allowed):
            raise ValueError(f"expected any of {', '.join(allowed)}")

    return check


def not_empty(_instance: Any, _attribute: Attribute[Any], value: Any) -> None:
    """A validator: some text."""
    if not value.strip():
        raise ValueError("expected a name")


def file_names(_instance: Any, _attribute: Attribute[Any], value: Any) -> None:
    """A validator: a path, or a list of them, of letters that a system takes."""
    if "\0" in "".join(value):
        raise ValueError("expected paths without NUL characters")


def known_zone(_instance: Any, _attribute: Attribute[Any], value: Any) -> None:
    """A validator: the name of a time zone, or nothing."""
    try:
        zone(value)
    except UsageError as error:
        raise ValueError(str(error)) from None


def duration_in(unit: str, *words: str) -> Check:
    """A validator: a duration, in `unit` where it names none, or one of the words."""

    def check(_instance: Any, _attribute: Attribute[Any], value: Any) -> None:
        if value not in words:
            parse_duration(value, unit=unit)

    return check


def size_or_nothing(_instance: Any, _attribute: Attribute[Any], value: Any) -> None:
    """A validator: a number of bytes, or an empty text."""
    if value:
        parse_size(value)


def named_policies(_instance: Any, _attribute: Attribute[Any], value: Any) -> None:
    """A validator: a table by types of chat."""
    wrong = sorted(value.keys() - {"direct", "dm", "group", "thread"})
    if wrong:
        raise ValueError(f"{wrong[0]}: expected one of direct, group, thread")


def positive_values(_instance: Any, _attribute: Attribute[Any], value: Any) -> None:
    """A validator: a table whose values are above 0."""
    for key, number in value.items():
        if number <= 0:
            raise ValueError(f"{key}: expected more than 0")


def setting(default: Any, help: str, *, check: Check | list[Check] | None = None) -> Any:
    """A field with a default and one line of help, which the reference in docs/ is checked against."""
    if isinstance(default, (dict, list)):
        default = Factory(type(default))
    return field(default=default, validator=check, metadata={"help": help})


@frozen(slots=True)
class AgentSection:
    name: str = setting("", "Name that the agent goes by in its prompt.")
    workspace: str = setting("", "Folder of the agent; empty: ~/.lamella/workspace (other agents: workspace-<id>).")
    model: str = setting("", "Model as provider/model; empty: chosen from the keys that are present.")
    thinking: str = setting("off", "Thinking level of new sessions.", check=one_of(*THINKING_LEVELS))
    system_prompt: str = setting("", "Replaces lamella's own opening of the system prompt.")
    timezone: str = setting(
        "", "Zone for dates in notes and prompts, such as Europe/Berlin; empty: the system's.", check=known_zone
    )
    max_turns: int = setting(0, "Most model calls of one run; 0: no limit.", check=between(0))
    steering_mode: str = setting(
        "one-at-a-time", "How queued steering messages are taken.", check=one_of("one-at-a-time", "all")
    )
    follow_up_mode: str = setting(
        "one-at-a-time", "How queued follow-up messages are taken.", check=one_of("one-at-a-time", "all")
    )


@frozen(slots=True)
class ContextSection:
    window: int = setting(0, "Caps the model's context window, in tokens; 0: the model's own.", check=between(0))
    estimator: str = setting("lamella", "Token estimator: lamella, pi, or a plugin's.")
    prompt_mode: str = setting(
        "auto",
        "Which system prompt: full, minimal, none (one sentence), or auto: minimal for sub-agents and scheduled runs.",
        check=one_of("auto", "full", "minimal", "none"),
    )


@frozen(slots=True)
class CompactionSection:
    enabled: bool = setting(True, "Compact history when the window is nearly full or overflows.")
    reserve_tokens: int = setting(16_384, "Tokens kept free for the reply.", check=between(0))
    reserve_tokens_floor: int = setting(20_000, "Least reserve; 0: no floor.", check=between(0))
    keep_recent_tokens: int = setting(20_000, "Newest tokens that a compaction keeps as they are.", check=between(1))
    custom_instructions: str = setting("", "What summaries should pay attention to.")
    timeout_seconds: float = setting(180.0, "Time limit of one summary request.", check=between(1))
    flush: bool = setting(True, "Let the memory plugin save what matters before history is compacted.")
    flush_soft_tokens: int = setting(
        4_000, "Memory is saved so many tokens before compaction would be due.", check=between(0)
    )
    flush_transcript_bytes: int = setting(
        2_097_152, "Memory is saved, too, when the transcript has grown by so many bytes; 0: off.", check=between(0)
    )


@frozen(slots=True)
class RetrySection:
    enabled: bool = setting(True, "Try again after overloads, rate limits and network errors.")
    max_retries: int = setting(3, "Most tries after the first.", check=between(0, 20))
    base_delay_ms: int = setting(2_000, "First wait; doubled each time.", check=between(0))
    max_delay_ms: int = setting(60_000, "Longest wait, also when a server asks for more.", check=between(0))


@frozen(slots=True)
class ModelsSection:
    providers: Mapping[str, ProviderSettings] = setting({}, "Providers by name: api, base_url, api_key_env, models.")
    overflow_patterns: tuple[str, ...] = setting(
        (), "More regular expressions that mark an error as a context overflow."
    )


@frozen(slots=True)
class ToolsSection:
    exec: bool = setting(False, "Offer the exec tool, which runs shell commands.")
    deny: tuple[str, ...] = setting((), "Tools that are never offered.")
    optional: tuple[str, ...] = setting(
        (), "Optional tools of plugins that are offered: names of tools, or of plugins for all of theirs."
    )
    allow_without_asking: tuple[str, ...] = setting(
        (), "Writing tools that chat runs without asking, such as write or edit."
    )
    parallel: bool = setting(True, "Run the calls of one reply at the same time.")


@frozen(slots=True)
class HooksSection:
    timeouts: Mapping[str, float] = setting({}, "Time limits by hook name, in seconds.", check=positive_values)


@frozen(slots=True)
class SlotsSection:
    memory: str = setting("memory-core", "The plugin that owns long-term memory, or none.", check=not_empty)


@frozen(slots=True)
class PluginsSection:
    enabled: bool = setting(True, "Load plugins at all; those built into the core stay.")
    allow: tuple[str, ...] = setting((), "If not empty: only these plugins, and the one in a slot.")
    deny: tuple[str, ...] = setting((), "Plugins that are never loaded.")
    without_prompt_text: tuple[str, ...] = setting(
        (), "Plugins that may add no text to prompts: their sections and additions are left out."
    )
    load_timeout_seconds: float = setting(
        10.0, "How long an installed plugin may take to be imported and made.", check=between(0.1)
    )
    slots: SlotsSection = setting(SlotsSection(), "Which plugin fills which slot.")
    config: Mapping[str, Mapping[str, Any]] = setting({}, "Sections of plugins, by plugin name.")


@frozen(slots=True)
class MemorySection:
    backend: str = setting("sqlite", "The memory backend of memory-core, by name.", check=not_empty)


@frozen(slots=True)
class MaintenanceSection:
    mode: str = setting(
        "warn",
        "warn: nothing is removed, lamella status tells what would be; enforce: it is done when a session begins.",
        check=one_of("warn", "enforce"),
    )
    prune_after: str = setting("30d", "Sessions that were not used for so long are put aside.", check=duration_in("d"))
    max_entries: int = setting(500, "Most sessions; those that were not used for longest go first.", check=between(1))
    reset_archive_retention: str = setting(
        "",
        "How long transcripts are kept that a reset put aside; empty: as prune_after; never: for ever.",
        check=duration_in("d", "", "never"),
    )
    max_disk_bytes: str = setting("", "Most bytes of the sessions folder; empty: no limit.", check=size_or_nothing)
    high_water_bytes: str = setting(
        "", "Above max_disk_bytes, so many bytes are left; empty: 80 % of it.", check=size_or_nothing
    )
    rotate_bytes: str = setting(
        "10mb", "A sessions.json above this is copied to sessions.json.bak.<time>; empty: never.", check=size_or_nothing
    )


@frozen(slots=True)
class ResetSection:
    mode: str | None = setting(
        None,
        "When a session ends by itself: none, daily (at_hour), idle (idle_minutes); unset: none.",
        check=optional(one_of("none", "daily", "idle")),
    )
    at_hour: int | None = setting(
        None,
        "Hour of the day in agent.timezone after which daily begins anew; unset: 4.",
        check=optional(between(0, 23)),
    )
    idle_minutes: int | None = setting(
        None,
        "Minutes without a message of a person after which idle begins anew, and daily too if set; unset: 60 for idle.",
        check=optional(between(1)),
    )


@frozen(slots=True)
class SessionSection:
    store: str = setting(
        "",
        "Folder of an agent's sessions; {agentId} and ~ are replaced; empty: in the state folder.",
        check=file_names,
    )
    lock_timeout_seconds: float = setting(
        30.0, "How long to wait for another process that uses the session.", check=between(0)
    )
    dm_scope: str = setting(
        "main",
        "Which direct chats share a session: main (all), per-peer, per-channel-peer, per-account-channel-peer.",
        check=one_of("main", "per-peer", "per-channel-peer", "per-account-channel-peer"),
    )
    identity_links: Mapping[str, tuple[str, ...]] = setting(
        {}, "People by name, with their ids on channels (42, or telegram:42); for dm_scope other than main."
    )
    reset_triggers: tuple[str, ...] = setting(("/new", "/reset"), "Messages that begin a new session.")
    reset: ResetSection = setting(ResetSection(), "When sessions end by themselves.")
    reset_by_type: Mapping[str, ResetSection] = setting(
        {},
        "The same by type of chat: direct, group, thread; what is unset there is as in session.reset.",
        check=named_policies,
    )
    reset_by_channel: Mapping[str, ResetSection] = setting(
        {}, "The same by channel, such as telegram; replaces all other policies."
    )
    parent_fork_max_tokens: int = setting(
        100_000,
        "A new thread begins as a copy of the session above it, up to so many tokens; 0: no limit.",
        check=between(0),
    )
    maintenance: MaintenanceSection = setting(MaintenanceSection(), "What becomes of old sessions and archives.")


@frozen(slots=True)
class Settings:
    """The whole configuration."""

    agent: AgentSection = setting(AgentSection(), "The agent, as all agents have it unless their own section differs.")
    agents: Mapping[str, AgentSection] = setting({}, "Settings of single agents, by agent id.")
    context: ContextSection = setting(ContextSection(), "What goes into a request.")
    compaction: CompactionSection = setting(CompactionSection(), "When and how history is compacted.")
    retry: RetrySection = setting(RetrySection(), "What happens after transient errors.")
    models: ModelsSection = setting(ModelsSection(), "Model providers.")
    tools: ToolsSection = setting(ToolsSection(), "Built-in tools.")
    hooks: HooksSection = setting(HooksSection(), "Hooks.")
    plugins: PluginsSection = setting(PluginsSection(), "Which plugins are loaded.")
    memory: MemorySection = setting(MemorySection(), "Long-term memory.")
    session: SessionSection = setting(SessionSection(), "Sessions.")

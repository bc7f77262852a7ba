"""Which key of OpenClaw is which of lamella: the table behind `openclaw_settings`.

It follows "Coming from OpenClaw" in docs/reference/configuration.md. Keys of memory search have the
names of 2026.9 here; before, they were below `agents.defaults.memorySearch`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from lamella.config.units import parse_duration, parse_size

Convert: TypeAlias = Callable[[Any], Any]

VARIABLE = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)\}")


class NoCounterpart(ValueError):
    """The value means nothing here; the message says why."""


def _same(value: Any) -> Any:
    return value


def _one_of(words: Mapping[Any, Any]) -> Convert:
    """A converter for a closed list of words; None: lamella does so anyway."""

    def convert(value: Any) -> Any:
        if not isinstance(value, (str, bool)) or value not in words:
            raise NoCounterpart(f"lamella has nothing like {value!r}")
        return words[value]

    return convert


def _model(value: Any) -> str:
    if not isinstance(value, str) or "/" not in value:
        raise NoCounterpart("expected provider/model")
    provider, _, model = value.partition("/")
    return f"{PROVIDERS.get(provider, provider)}/{model}"


def variable_name(value: Any) -> str:
    found = VARIABLE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise NoCounterpart("a secret; keep it in an environment variable")
    return found[1]


def _duration(value: Any) -> str:
    """A bare number is days there; `false` keeps for ever."""
    if value is False:
        return "never"
    return f"{value}d" if isinstance(value, (int, float)) else str(value)


def _seconds(value: Any) -> float:
    """From milliseconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise NoCounterpart(f"expected milliseconds, found {value!r}")
    return value / 1000


def _minutes(value: Any) -> float:
    """A bare number is minutes there."""
    try:
        return parse_duration(value, unit="m") / 60
    except ValueError as error:
        raise NoCounterpart(str(error)) from None


@frozen(slots=True)
class Rule:
    """A key there, `*` standing for any one part, and the key here, `*` standing for the same parts in order."""

    theirs: str
    ours: str
    convert: Convert = _same


PROVIDERS = {"google": "gemini"}
_API = _one_of(
    {"openai-completions": "openai-chat", "anthropic-messages": "anthropic", "google-generative-ai": "gemini"}
)
_QMD_MODES = _one_of({"search": "search", "vsearch": "semantic", "query": "query"})
_EMBEDDERS = ("openai", "gemini", "voyage", "mistral", "ollama")

_DEFAULTS = "agents.defaults"
_FILES = "plugins.config.workspace-files"
_NOTES = "plugins.config.daily-notes"
_SESSION_NOTES = "plugins.config.session-memory"
_QMD = "plugins.config.qmd-backend"
_LANCEDB = "plugins.config.memory-lancedb"
_SAFEGUARD = "plugins.config.compaction-safeguard"
_PRUNING = "plugins.config.context-pruning"
_MEMORY = "plugins.config.memory-core"
_LIMITS = "plugins.config.history-limit.channels"

RULES = (
    Rule(f"{_DEFAULTS}.model", "agent.model", _model),
    Rule(f"{_DEFAULTS}.model.primary", "agent.model", _model),
    Rule("agents.list.*.model", "agents.*.model", _model),
    Rule("agents.list.*.model.primary", "agents.*.model", _model),
    Rule("agents.list.*.name", "agents.*.name"),
    Rule(f"{_DEFAULTS}.thinkingDefault", "agent.thinking"),
    Rule(f"{_DEFAULTS}.userTimezone", "agent.timezone"),
    Rule(f"{_DEFAULTS}.contextTokens", "context.window"),
    Rule(f"{_DEFAULTS}.bootstrapMaxChars", f"{_FILES}.file_max_chars"),
    Rule(f"{_DEFAULTS}.bootstrapTotalMaxChars", f"{_FILES}.total_max_chars"),
    Rule(f"{_DEFAULTS}.bootstrapPromptTruncationWarning", f"{_FILES}.truncation_warning"),
    Rule(f"{_DEFAULTS}.startupContext.dailyMemoryDays", f"{_NOTES}.days"),
    Rule(f"{_DEFAULTS}.startupContext.maxFileBytes", f"{_NOTES}.file_max_bytes"),
    Rule(f"{_DEFAULTS}.startupContext.maxFileChars", f"{_NOTES}.file_max_chars"),
    Rule(f"{_DEFAULTS}.startupContext.maxTotalChars", f"{_NOTES}.total_max_chars"),
    Rule("skills.limits.maxSkillsInPrompt", "plugins.config.skills.max_in_prompt"),
    Rule("skills.limits.maxSkillsPromptChars", "plugins.config.skills.max_prompt_chars"),
    Rule("skills.load.extraDirs", "plugins.config.skills.extra_dirs"),
    Rule(f"{_DEFAULTS}.compaction.reserveTokens", "compaction.reserve_tokens"),
    Rule(f"{_DEFAULTS}.compaction.reserveTokensFloor", "compaction.reserve_tokens_floor"),
    Rule(f"{_DEFAULTS}.compaction.keepRecentTokens", "compaction.keep_recent_tokens"),
    Rule(f"{_DEFAULTS}.compaction.customInstructions", "compaction.custom_instructions"),
    Rule(f"{_DEFAULTS}.compaction.timeoutSeconds", "compaction.timeout_seconds"),
    Rule(
        f"{_DEFAULTS}.compaction.mode",
        "plugins.deny",
        _one_of({"safeguard": None, "default": ["compaction-safeguard"]}),
    ),
    Rule(f"{_DEFAULTS}.compaction.maxHistoryShare", f"{_SAFEGUARD}.history_share"),
    Rule(f"{_DEFAULTS}.compaction.recentTurnsPreserve", f"{_SAFEGUARD}.recent_turns"),
    Rule(f"{_DEFAULTS}.compaction.qualityGuard.enabled", f"{_SAFEGUARD}.quality_guard"),
    Rule(f"{_DEFAULTS}.compaction.qualityGuard.maxRetries", f"{_SAFEGUARD}.quality_retries"),
    Rule(f"{_DEFAULTS}.compaction.identifierPolicy", f"{_SAFEGUARD}.identifier_policy"),
    Rule(f"{_DEFAULTS}.compaction.identifierInstructions", f"{_SAFEGUARD}.identifier_instructions"),
    Rule(f"{_DEFAULTS}.compaction.postCompactionSections", f"{_SAFEGUARD}.refresh_sections"),
    Rule(f"{_DEFAULTS}.compaction.memoryFlush.enabled", "compaction.flush"),
    Rule(f"{_DEFAULTS}.compaction.memoryFlush.softThresholdTokens", "compaction.flush_soft_tokens"),
    Rule(
        f"{_DEFAULTS}.compaction.memoryFlush.forceFlushTranscriptBytes", "compaction.flush_transcript_bytes", parse_size
    ),
    Rule(f"{_DEFAULTS}.compaction.memoryFlush.prompt", f"{_MEMORY}.flush_prompt"),
    Rule(f"{_DEFAULTS}.compaction.memoryFlush.systemPrompt", f"{_MEMORY}.flush_system_prompt"),
    Rule(f"{_DEFAULTS}.contextPruning.mode", f"{_PRUNING}.mode", _one_of({"off": "off", "cache-ttl": "cache-ttl"})),
    Rule(f"{_DEFAULTS}.contextPruning.ttl", f"{_PRUNING}.ttl"),
    Rule(f"{_DEFAULTS}.contextPruning.keepLastAssistants", f"{_PRUNING}.keep_last_assistants"),
    Rule(f"{_DEFAULTS}.contextPruning.softTrimRatio", f"{_PRUNING}.soft_trim_ratio"),
    Rule(f"{_DEFAULTS}.contextPruning.hardClearRatio", f"{_PRUNING}.hard_clear_ratio"),
    Rule(f"{_DEFAULTS}.contextPruning.minPrunableToolChars", f"{_PRUNING}.min_prunable_tool_chars"),
    Rule(f"{_DEFAULTS}.contextPruning.tools.allow", f"{_PRUNING}.tools.allow"),
    Rule(f"{_DEFAULTS}.contextPruning.tools.deny", f"{_PRUNING}.tools.deny"),
    Rule(f"{_DEFAULTS}.contextPruning.softTrim.maxChars", f"{_PRUNING}.soft_trim.max_chars"),
    Rule(f"{_DEFAULTS}.contextPruning.softTrim.headChars", f"{_PRUNING}.soft_trim.head_chars"),
    Rule(f"{_DEFAULTS}.contextPruning.softTrim.tailChars", f"{_PRUNING}.soft_trim.tail_chars"),
    Rule(f"{_DEFAULTS}.contextPruning.hardClear.enabled", f"{_PRUNING}.hard_clear.enabled"),
    Rule(f"{_DEFAULTS}.contextPruning.hardClear.placeholder", f"{_PRUNING}.hard_clear.placeholder"),
    Rule("channels.*.historyLimit", f"{_LIMITS}.*.group"),
    Rule("channels.*.dmHistoryLimit", f"{_LIMITS}.*.direct"),
    Rule("channels.*.dms.*.historyLimit", f"{_LIMITS}.*.users.*"),
    Rule("session.dmScope", "session.dm_scope"),
    Rule("session.identityLinks.*", "session.identity_links.*"),
    Rule("session.resetTriggers", "session.reset_triggers"),
    Rule("session.reset.mode", "session.reset.mode"),
    Rule("session.reset.atHour", "session.reset.at_hour"),
    Rule("session.reset.idleMinutes", "session.reset.idle_minutes"),
    Rule("session.idleMinutes", "session.reset.idle_minutes"),
    Rule("session.resetByType.*.mode", "session.reset_by_type.*.mode"),
    Rule("session.resetByType.*.atHour", "session.reset_by_type.*.at_hour"),
    Rule("session.resetByType.*.idleMinutes", "session.reset_by_type.*.idle_minutes"),
    Rule("session.resetByChannel.*.mode", "session.reset_by_channel.*.mode"),
    Rule("session.resetByChannel.*.atHour", "session.reset_by_channel.*.at_hour"),
    Rule("session.resetByChannel.*.idleMinutes", "session.reset_by_channel.*.idle_minutes"),
    Rule("session.parentForkMaxTokens", "session.parent_fork_max_tokens"),
    Rule("session.maintenance.mode", "session.maintenance.mode"),
    Rule("hooks.internal.entries.session-memory.messages", f"{_SESSION_NOTES}.messages"),
    Rule(
        "hooks.internal.entries.session-memory.llmSlug",
        f"{_SESSION_NOTES}.slug",
        _one_of({True: "model", False: "time"}),
    ),
    Rule("session.maintenance.pruneAfter", "session.maintenance.prune_after", _duration),
    Rule("session.maintenance.maxEntries", "session.maintenance.max_entries"),
    Rule("session.maintenance.resetArchiveRetention", "session.maintenance.reset_archive_retention", _duration),
    Rule("session.maintenance.rotateBytes", "session.maintenance.rotate_bytes", str),
    Rule("session.maintenance.maxDiskBytes", "session.maintenance.max_disk_bytes", str),
    Rule("session.maintenance.highWaterBytes", "session.maintenance.high_water_bytes", str),
    Rule("plugins.enabled", "plugins.enabled"),
    Rule(
        "plugins.slots.memory",
        "plugins.slots.memory",
        _one_of({"memory-core": "memory-core", "memory-lancedb": "memory-lancedb", "none": "none"}),
    ),
    Rule("memory.citations", f"{_MEMORY}.citations"),
    Rule("memory.backend", "memory.backend", _one_of({"builtin": "sqlite", "qmd": "qmd"})),
    Rule("memory.qmd.command", f"{_QMD}.command"),
    Rule("memory.qmd.searchMode", f"{_QMD}.mode", _QMD_MODES),
    Rule("memory.qmd.limits.maxResults", f"{_MEMORY}.max_results"),
    Rule("memory.qmd.limits.maxSnippetChars", f"{_QMD}.limits.snippet_chars"),
    Rule("memory.qmd.limits.timeoutMs", f"{_QMD}.limits.timeout_seconds", _seconds),
    Rule("memory.qmd.sessions.enabled", f"{_MEMORY}.session_memory"),
    Rule("memory.qmd.update.debounceMs", f"{_QMD}.update.debounce_seconds", _seconds),
    Rule("memory.qmd.update.interval", f"{_QMD}.update.interval_minutes", _minutes),
    Rule("memory.qmd.update.embedInterval", f"{_QMD}.update.embed_interval_minutes", _minutes),
    Rule("memory.qmd.update.updateTimeoutMs", f"{_QMD}.update.timeout_seconds", _seconds),
    Rule("memory.qmd.update.embedTimeoutMs", f"{_QMD}.update.embed_timeout_seconds", _seconds),
    Rule("plugins.entries.memory-lancedb.config.autoCapture", f"{_LANCEDB}.auto_capture"),
    Rule("plugins.entries.memory-lancedb.config.autoRecall", f"{_LANCEDB}.auto_recall"),
    Rule("plugins.entries.memory-lancedb.config.captureMaxChars", f"{_LANCEDB}.capture_max_chars"),
    Rule("memory.search.enabled", "plugins.slots.memory", _one_of({True: None, False: "none"})),
    Rule(
        "memory.search.provider",
        f"{_MEMORY}.embedder",
        _one_of({**{name: name for name in _EMBEDDERS}, "none": "none", "auto": None}),
    ),
    Rule(
        "memory.search.fallback",
        "plugins.config.embedders.fallback",
        _one_of({"none": None, **{n: n for n in _EMBEDDERS}}),
    ),
    Rule("memory.search.chunking.tokens", f"{_MEMORY}.chunk_tokens"),
    Rule("memory.search.chunking.overlap", f"{_MEMORY}.chunk_overlap"),
    Rule("memory.search.query.maxResults", f"{_MEMORY}.max_results"),
    Rule("memory.search.query.minScore", f"{_MEMORY}.min_score"),
    Rule("memory.search.query.hybrid.vectorWeight", f"{_MEMORY}.dense_share"),
    Rule("memory.search.query.hybrid.candidateMultiplier", f"{_MEMORY}.candidate_multiplier"),
    Rule("memory.search.query.hybrid.mmr.lambda", f"{_MEMORY}.mmr_lambda"),
    Rule("memory.search.query.hybrid.temporalDecay.halfLifeDays", f"{_MEMORY}.half_life_days"),
    Rule("memory.search.extraPaths", f"{_MEMORY}.extra_paths"),
    Rule("memory.search.experimental.sessionMemory", f"{_MEMORY}.session_memory"),
    Rule("memory.search.rememberAcrossConversations", f"{_MEMORY}.session_memory"),
    Rule("memory.search.sync.sessions.deltaBytes", f"{_MEMORY}.session_delta_bytes"),
    Rule("memory.search.sync.sessions.deltaMessages", f"{_MEMORY}.session_delta_messages"),
    Rule("memory.search.sync.onSessionStart", f"{_MEMORY}.sync_on_session_start"),
    Rule("memory.search.sync.onSearch", f"{_MEMORY}.sync_on_search"),
    Rule("memory.search.sync.watch", f"{_MEMORY}.watch"),
    Rule("memory.search.sync.watchDebounceMs", f"{_MEMORY}.watch_debounce_ms"),
    Rule("memory.search.sync.intervalMinutes", f"{_MEMORY}.sync_interval_minutes"),
    Rule("models.providers.*.baseUrl", "models.providers.*.base_url"),
    Rule("models.providers.*.api", "models.providers.*.api", _API),
    Rule("models.providers.*.apiKey", "models.providers.*.api_key_env", variable_name),
    Rule("models.providers.*.models.*.contextWindow", "models.providers.*.models.*.context_window"),
    Rule("models.providers.*.models.*.maxTokens", "models.providers.*.models.*.max_output"),
    Rule("models.providers.*.models.*.reasoning", "models.providers.*.models.*.reasoning"),
    Rule("models.providers.*.models.*.cost.input", "models.providers.*.models.*.cost_input"),
    Rule("models.providers.*.models.*.cost.output", "models.providers.*.models.*.cost_output"),
    Rule("models.providers.*.models.*.cost.cacheRead", "models.providers.*.models.*.cost_cache_read"),
    Rule("models.providers.*.models.*.cost.cacheWrite", "models.providers.*.models.*.cost_cache_write"),
)

"""Model providers by name, and the way from a choice to a model.

Nothing here imports a provider's library: that happens when a model of it is made.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

from attrs import asdict, frozen

from lamella.config.structure import near_match
from lamella.errors import ConfigError, LamellaError, MissingExtra, Problem, UsageError
from lamella.models.choice import choose_model, key_source, parse_model_ref
from lamella.models.classify import check_patterns
from lamella.models.endpoint import Endpoint
from lamella.models.known import DEFAULT, known_model
from lamella.plugins.threads import describe
from lamella.types.model import Model, ModelChoice, ModelFactory, ModelInfo, ModelProvider
from lamella.types.model_settings import ModelOverrides, ProviderSettings

__all__ = ["builtin_providers", "choose_model", "make_model", "model_info", "parse_model_ref"]

KEY = "models.providers"

log = logging.getLogger(__name__)


@frozen(slots=True)
class _Api:
    """A wire format: the module that speaks it, the packages that it needs, the extra with them."""

    module: str
    packages: tuple[str, ...]
    extra: str

    @property
    def installed(self) -> bool:
        return all(_importable(name) for name in self.packages)


_APIS = {
    "openai-chat": _Api("lamella.models.openai", ("pydantic_ai", "openai"), "lamella[openai]"),
    "anthropic": _Api("lamella.models.anthropic", ("pydantic_ai", "anthropic"), "lamella[anthropic]"),
    "gemini": _Api("lamella.models.gemini", ("pydantic_ai", "google.genai"), "lamella[gemini]"),
}


@frozen(slots=True)
class _Remote:
    """A provider that is reached over the network."""

    name: str
    api: str
    key_env: tuple[str, ...] = ()
    default_model: str = ""
    base_url: str = ""
    info: ModelInfo = DEFAULT


_REMOTES = (
    _Remote("anthropic", "anthropic", ("ANTHROPIC_API_KEY",), "claude-sonnet-5-5"),
    _Remote("openai", "openai-chat", ("OPENAI_API_KEY",), "gpt-6.1-terra"),
    _Remote("gemini", "gemini", ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "gemini-3.8-flash"),
    _Remote(
        "openrouter",
        "openai-chat",
        ("OPENROUTER_API_KEY",),
        "anthropic/claude-sonnet-5.5",
        "https://openrouter.ai/api/v1",
    ),
    _Remote("deepseek", "openai-chat", ("DEEPSEEK_API_KEY",), "deepseek-v4-pro", "https://api.deepseek.com/v1"),
    # Ollama's window is what the server was started with; unless told, assume a modest one.
    _Remote("ollama", "openai-chat", base_url="http://localhost:11434/v1", info=ModelInfo(32_768, 8_192)),
)


def builtin_providers(settings: Mapping[str, ProviderSettings] | None = None) -> dict[str, ModelProvider]:
    """Providers by name: those lamella knows, as configured, and those that only `settings` names.

    Raises `ConfigError` for a configured provider without an address.
    """
    settings = settings or {}
    check_providers(settings)
    local = (
        ModelProvider("offline", _offline, "rules"),
        ModelProvider("scripted", _scripted),
    )
    known = {remote.name: remote for remote in _REMOTES}
    added = (_Remote(name, "openai-chat") for name in settings if name not in known)
    remotes = (_provider(remote, settings.get(remote.name)) for remote in (*_REMOTES, *added))
    return {p.name: p for p in (*local, *remotes)}


def check_providers(settings: Mapping[str, ProviderSettings]) -> None:
    """Raise `ConfigError` with every configured provider that cannot work."""
    known = {remote.name for remote in _REMOTES}
    problems: list[Problem] = []
    for name, own in settings.items():
        if name in ("offline", "scripted"):
            problems.append(Problem(f"{KEY}.{name}", "is built in and takes no settings"))
        elif name not in known and not own.base_url:
            text = f"is required for a provider that lamella does not know{near_match(name, sorted(known))}"
            problems.append(Problem(f"{KEY}.{name}.base_url", text))
    if problems:
        raise ConfigError(problems)


def make_model(
    choice: ModelChoice,
    providers: Mapping[str, ModelProvider],
    settings: Mapping[str, ProviderSettings],
    environ: Mapping[str, str],
    *,
    overflow_patterns: Sequence[str] = (),
) -> Model:
    """The chosen model, ready to stream.

    `overflow_patterns` are more regular expressions that mark an error as a full window. Raises
    `UsageError` for an unknown provider, `MissingExtra`, `ConfigError` for a missing key, and `LamellaError`
    when a provider of a plugin fails.
    """
    provider = providers.get(choice.provider)
    if provider is None:
        known = ", ".join(sorted(providers))
        near = near_match(choice.provider, list(providers))
        raise UsageError(f"unknown model provider {choice.provider!r}{near}; there are: {known}")
    check_patterns(overflow_patterns)
    own = settings.get(choice.provider, ProviderSettings())
    values = asdict(own, recurse=False)
    values["api_key"] = own.api_key or environ.get(key_source(provider, environ), "").strip()
    values["overflow_patterns"] = tuple(overflow_patterns)
    return _made(provider, choice.model, values)


def _made(provider: ModelProvider, name: str, values: Mapping[str, Any]) -> Model:
    """The model that a provider makes; whatever else it raises or gives is told as its fault."""
    try:
        model = provider.factory(name, values)
    except LamellaError:
        raise
    except (Exception, SystemExit) as error:
        log.warning("model provider %s failed", provider.name, exc_info=True)
        raise LamellaError(f"model provider {provider.name!r} failed for {name!r}: {describe(error)}") from error
    if not isinstance(model, Model):
        raise LamellaError(f"model provider {provider.name!r} gave {type(model).__name__}, expected a Model")
    return model


def model_info(model: str, overrides: Mapping[str, ModelOverrides], default: ModelInfo = DEFAULT) -> ModelInfo:
    """Sizes and costs of a model: what is configured for it, else what lamella knows."""
    info = known_model(model, default)
    own = overrides.get(model)
    return own.apply(info) if own is not None else info


def _provider(remote: _Remote, own: ProviderSettings | None) -> ModelProvider:
    api = _APIS[(own.api if own else "") or remote.api]
    variables = remote.key_env
    default_model = remote.default_model
    if own is not None:
        # A named variable takes the place of the usual ones: its owner wants no other key sent.
        variables = (own.api_key_env,) if own.api_key_env else variables
        default_model = default_model or next(iter(own.models), "")
    return ModelProvider(
        remote.name,
        _factory(remote),
        default_model,
        variables,
        api.extra,
        api.installed,
        has_key=bool(own and own.api_key),
    )


def _factory(remote: _Remote) -> ModelFactory:
    def make(model: str, settings: Mapping[str, Any]) -> Model:
        values = dict(settings)
        patterns = values.pop("overflow_patterns", ())
        own = ProviderSettings(**values)
        api = _APIS[own.api or remote.api]
        if not api.installed:
            raise MissingExtra(f"the {remote.name} provider", api.extra)
        _require_key(remote, own)
        endpoint = Endpoint(
            provider=remote.name,
            model=model,
            info=model_info(model, own.models, remote.info),
            api_key=own.api_key,
            base_url=own.base_url or remote.base_url,
            headers=own.headers,
            timeout=own.timeout,
            overflow_patterns=patterns,
        )
        try:
            module = import_module(api.module)
        except ImportError as error:  # installed, but not as a whole or not in a version that fits
            raise MissingExtra(f"the {remote.name} provider ({error})", api.extra) from error
        return cast(Model, module.make(endpoint))

    return make


def _require_key(remote: _Remote, own: ProviderSettings) -> None:
    """Servers at an address of the user's own may do without a key, unless a variable is named."""
    wanted = (own.api_key_env,) if own.api_key_env else () if own.base_url else remote.key_env
    if own.api_key or not wanted:
        return
    problem = Problem(f"{KEY}.{remote.name}", f"no key: {' or '.join(wanted)} is not set")
    raise ConfigError([problem], hint=f"export {wanted[0]}=... (or choose another model with --model)")


def _offline(model: str, settings: Mapping[str, Any]) -> Model:
    from lamella.models.offline import OfflineModel

    offline = OfflineModel()
    if model != offline.id:
        raise UsageError(f"offline/{model}: there is only offline/{offline.id}")
    return offline


def _scripted(model: str, settings: Mapping[str, Any]) -> Model:
    from lamella.models.scripted import ScriptedModel

    return ScriptedModel.from_file(model)


def _importable(name: str) -> bool:
    """True when a package is installed, without importing it."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # a parent of a dotted name is missing
        return False

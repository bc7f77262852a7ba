"""Which model runs: names, and the order in which they are looked for."""

from __future__ import annotations

from collections.abc import Mapping

from lamella.config.structure import near_match
from lamella.errors import UsageError
from lamella.types.model import ModelChoice, ModelProvider

VARIABLE = "LAMELLA_MODEL"
OFFLINE = "offline"


def parse_model_ref(text: str) -> tuple[str, str]:
    """(provider, model) of `provider/model`; the model is empty when only a provider is named.

    Model names may contain slashes. Raises `UsageError`.
    """
    provider, _, model = text.strip().partition("/")
    if not provider or any(c.isspace() for c in provider):
        raise UsageError(f"model {text!r}: expected provider/model, such as anthropic/claude-sonnet-5-5")
    return provider.lower(), model


def choose_model(
    flag: str,
    variable: str,
    configured: str,
    environ: Mapping[str, str],
    providers: Mapping[str, ModelProvider],
) -> ModelChoice:
    """The model to use, and why.

    Looked at in this order: `--model` (`flag`), LAMELLA_MODEL (`variable`), `agent.model`
    (`configured`), the first of `providers` that has a key and whose package is installed, else
    the offline model with a note that says why. Raises `UsageError` for a name that leads nowhere.
    """
    for text, source in ((flag, "--model"), (variable, VARIABLE), (configured, "agent.model")):
        if text.strip():
            return _named(text, source, providers)
    with_key = [(p, name) for p in providers.values() if (name := key_source(p, environ))]
    for provider, name in with_key:
        if provider.available and provider.default_model:
            return ModelChoice(provider.name, provider.default_model, name)
    return ModelChoice(OFFLINE, providers[OFFLINE].default_model, "fallback", _why_offline(with_key))


def key_source(provider: ModelProvider, environ: Mapping[str, str]) -> str:
    """What holds a key of the provider: a variable's name, `config`, or nothing."""
    if provider.has_key:
        return "config"
    return next((name for name in provider.key_env if environ.get(name, "").strip()), "")


def _named(text: str, source: str, providers: Mapping[str, ModelProvider]) -> ModelChoice:
    name, model = parse_model_ref(text)
    provider = providers.get(name)
    if provider is None:
        known = ", ".join(sorted(providers))
        near = near_match(name, list(providers))
        raise UsageError(
            f"{source}: unknown model provider {name!r}{near}; there are: {known}",
            hint="Name the model as provider/model.",
        )
    if not model and not provider.default_model:
        raise UsageError(f"{source}: {name!r} has no default model; expected {name}/MODEL")
    return ModelChoice(name, model or provider.default_model, source)


def _why_offline(with_key: list[tuple[ModelProvider, str]]) -> str:
    """One line for the user."""
    for provider, source in with_key:
        if not provider.available:
            return (
                f"{source} is set, but the {provider.name} provider is not installed "
                f"(pip install '{provider.extra}'); using the offline model, which is no language model."
            )
        return f"{source} is set, but no {provider.name} model is named; using the offline model."
    return (
        "No model was named and no API key was found; using the offline model, which is no language model. "
        f"Set a key such as ANTHROPIC_API_KEY, or name a model with --model or {VARIABLE}."
    )

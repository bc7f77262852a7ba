"""What the providers' servers demand of a history: one profile each."""

from __future__ import annotations

from attrs import frozen

from lamella.config.structure import near_match
from lamella.errors import UsageError


@frozen(slots=True)
class ProviderProfile:
    """Rules for one family of servers.

    `merge_turns`: user turns must not follow each other. `first_user`: a history must begin with a
    user message. `max_id` (characters) and `id_alphabet` limit tool call ids (None: as they are);
    `exact_id` is the one length that ids may have. `thinking`: whether thinking of the same model may go back.
    """

    name: str
    merge_turns: bool = False
    first_user: bool = False
    id_alphabet: str | None = None
    max_id: int | None = None
    exact_id: int | None = None
    thinking: bool = True


_ID = "A-Za-z0-9_-"

PROFILES = {
    p.name: p
    for p in (
        ProviderProfile("anthropic", merge_turns=True, first_user=True, id_alphabet=_ID, max_id=64),
        ProviderProfile("openai-chat", id_alphabet=_ID, max_id=40),
        ProviderProfile("openai-responses", id_alphabet=_ID + "|", max_id=64),
        ProviderProfile("gemini", merge_turns=True, first_user=True, id_alphabet=_ID, max_id=64),
        ProviderProfile("mistral", merge_turns=True, id_alphabet="A-Za-z0-9", exact_id=9),
        ProviderProfile("strict", merge_turns=True, first_user=True, id_alphabet=_ID, max_id=40, thinking=False),
        ProviderProfile("lenient"),
    )
}

_BY_API = {
    "anthropic-messages": "anthropic",
    "bedrock-converse-stream": "anthropic",
    "openai-completions": "openai-chat",
    "openai-responses": "openai-responses",
    "azure-openai-responses": "openai-responses",
    "openai-codex-responses": "openai-responses",
    "google-generative-ai": "gemini",
    "google-gemini-cli": "gemini",
    "google-vertex": "gemini",
    "mistral-conversations": "mistral",
}


def profile(name: str) -> ProviderProfile:
    """The profile of that name. Raises `UsageError`."""
    found = PROFILES.get(name)
    if found is None:
        known = ", ".join(PROFILES)
        raise UsageError(f"provider profile {name!r}{near_match(name, list(PROFILES))}: expected one of {known}")
    return found


def profile_for_api(api: str) -> ProviderProfile:
    """The profile for a model's wire format; `lenient` for those that we make ourselves."""
    return PROFILES[_BY_API.get(api, "lenient")]

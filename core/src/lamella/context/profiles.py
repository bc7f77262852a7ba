"""What the providers' servers demand of a history: one profile each."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen

from lamella.config.structure import near_match
from lamella.context.repairs.ids import IdRule
from lamella.errors import UsageError

ThinkingRule: TypeAlias = Literal["all", "loop", "none"]

MIB = 1024 * 1024
COMMON_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


@frozen(slots=True)
class ProviderProfile:
    """Rules for one family of servers.

    `merge_turns`: turns of one role must not follow each other. `first_user`: a history must begin
    with a user message. `reply_after_results`: a user message must not follow tool results at once.

    `thinking`: whether thinking of the same model goes back always, only within the running tool
    loop, or never; `signed_thinking`: never without a signature; `base64_signatures`: what is not
    base64 is no signature; `signed_blanks`: a blank text of a reply goes back for its signature.
    `reasoning_items`: OpenAI's Responses, where a call's item needs the reasoning item that it came with.

    `image_types` and `max_image` (bytes) limit images; `old_images`: whether images of earlier
    turns go again.
    """

    name: str
    ids: IdRule = IdRule()
    merge_turns: bool = False
    first_user: bool = False
    reply_after_results: bool = False
    thinking: ThinkingRule = "all"
    signed_thinking: bool = False
    base64_signatures: bool = False
    signed_blanks: bool = False
    reasoning_items: bool = False
    image_types: frozenset[str] = COMMON_IMAGES
    max_image: int = 20 * MIB
    old_images: bool = True


_WORD = "A-Za-z0-9_-"
_ALNUM = "A-Za-z0-9"

PROFILES = {
    p.name: p
    for p in (
        ProviderProfile(
            "anthropic",
            IdRule(_WORD, "_", 64),
            merge_turns=True,
            first_user=True,
            thinking="loop",
            signed_thinking=True,
            max_image=5 * MIB,
        ),
        ProviderProfile("openai-chat", IdRule(_WORD, "_", 40)),
        ProviderProfile("openai-responses", IdRule(_WORD, "_", 64, items=True), reasoning_items=True),
        ProviderProfile(
            "gemini",
            IdRule(_WORD, "_", 64),
            merge_turns=True,
            first_user=True,
            base64_signatures=True,
            signed_blanks=True,
            image_types=frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}),
        ),
        ProviderProfile(
            "mistral",
            IdRule(_ALNUM, "", 9, exact=True),
            merge_turns=True,
            first_user=True,
            reply_after_results=True,
            max_image=10 * MIB,
        ),
        ProviderProfile(
            "strict", IdRule(_ALNUM, "", 40), merge_turns=True, first_user=True, thinking="none", old_images=False
        ),
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


def profile_for(provider: str, api: str) -> ProviderProfile:
    """The profile for a model: Mistral's by the provider's name, else by the wire format."""
    return PROFILES["mistral"] if provider == "mistral" else profile_for_api(api)


def profile_for_api(api: str) -> ProviderProfile:
    """The profile for a wire format; `lenient` for those that we make ourselves."""
    return PROFILES[_BY_API.get(api, "lenient")]

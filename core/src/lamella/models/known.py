"""What is known about well-known models: sizes in tokens, costs in US dollars for a million tokens.

Names are matched by their longest known beginning, without a vendor before a slash and with dots
read as hyphens, so that `anthropic/claude-sonnet-4.6-20260101` finds `claude-sonnet-4-6`. Prices
are those for short prompts, where a provider asks more for long ones. Configuration overrides all
of this by model: `[models.providers.<name>.models."<model>"]`.
"""

from __future__ import annotations

from typing import TypeAlias

from lamella.types.model import ModelInfo

DEFAULT = ModelInfo()

# Input, output, read from a cache, written to a cache.
Costs: TypeAlias = tuple[float, float, float, float]
FREE: Costs = (0, 0, 0, 0)  # also where the price is not known


def _text(window: int, output: int, costs: Costs) -> ModelInfo:
    return ModelInfo(window, output, False, False, *costs)


def _vision(window: int, output: int, costs: Costs) -> ModelInfo:
    return ModelInfo(window, output, True, False, *costs)


def _thinking(window: int, output: int, costs: Costs, *, images: bool = True) -> ModelInfo:
    return ModelInfo(window, output, images, True, *costs)


KNOWN: dict[str, ModelInfo] = {
    # Anthropic
    "claude": _thinking(200_000, 64_000, FREE),
    "claude-3": _vision(200_000, 4_096, (3, 15, 0.3, 3.75)),
    "claude-3-haiku": _vision(200_000, 4_096, (0.25, 1.25, 0.03, 0.3)),
    "claude-3-5-haiku": _vision(200_000, 8_192, (0.8, 4, 0.08, 1)),
    "claude-3-5-sonnet": _vision(200_000, 8_192, (3, 15, 0.3, 3.75)),
    "claude-3-7-sonnet": _thinking(200_000, 64_000, (3, 15, 0.3, 3.75)),
    "claude-opus-4": _thinking(200_000, 32_000, (15, 75, 1.5, 18.75)),
    "claude-opus-4-5": _thinking(200_000, 64_000, (5, 25, 0.5, 6.25)),
    "claude-opus-4-6": _thinking(1_000_000, 128_000, (5, 25, 0.5, 6.25)),
    "claude-opus-4-7": _thinking(1_000_000, 128_000, (5, 25, 0.5, 6.25)),
    "claude-opus-4-8": _thinking(1_000_000, 128_000, (5, 25, 0.5, 6.25)),
    "claude-opus-5": _thinking(1_000_000, 128_000, (5, 25, 0.5, 6.25)),
    "claude-opus-5-5": _thinking(1_000_000, 128_000, (4, 20, 0.2, 5)),
    "claude-sonnet-4": _thinking(200_000, 64_000, (3, 15, 0.3, 3.75)),
    "claude-sonnet-4-6": _thinking(1_000_000, 128_000, (3, 15, 0.3, 3.75)),
    "claude-sonnet-5": _thinking(1_000_000, 128_000, (2, 10, 0.2, 2.5)),
    "claude-sonnet-5-5": _thinking(1_000_000, 128_000, (2, 10, 0.1, 2.5)),
    "claude-haiku-4-5": _thinking(200_000, 64_000, (1, 5, 0.1, 1.25)),
    "claude-haiku-5-5": _thinking(1_000_000, 128_000, (0.1, 0.5, 0.01, 0.125)),
    "claude-fable-5": _thinking(1_000_000, 128_000, (10, 50, 1, 12.5)),
    "claude-fable-5-2": _thinking(1_000_000, 128_000, (8, 40, 0.2, 10)),
    # OpenAI
    "gpt-3-5-turbo": _text(16_385, 4_096, (0.5, 1.5, 0, 0)),
    "gpt-4": _text(8_192, 8_192, (30, 60, 0, 0)),
    "gpt-4-turbo": _vision(128_000, 4_096, (10, 30, 0, 0)),
    "gpt-4o": _vision(128_000, 16_384, (2.5, 10, 1.25, 0)),
    "gpt-4o-mini": _vision(128_000, 16_384, (0.15, 0.6, 0.075, 0)),
    "gpt-4-1": _vision(1_047_576, 32_768, (2, 8, 0.5, 0)),
    "gpt-4-1-mini": _vision(1_047_576, 32_768, (0.4, 1.6, 0.1, 0)),
    "gpt-4-1-nano": _vision(1_047_576, 32_768, (0.1, 0.4, 0.025, 0)),
    "gpt-5": _thinking(400_000, 128_000, (1.25, 10, 0.125, 0)),
    "gpt-5-mini": _thinking(400_000, 128_000, (0.25, 2, 0.025, 0)),
    "gpt-5-nano": _thinking(400_000, 128_000, (0.05, 0.4, 0.005, 0)),
    "gpt-5-2": _thinking(400_000, 128_000, (1.75, 14, 0.175, 0)),
    "gpt-5-3": _thinking(128_000, 16_384, (1.75, 14, 0.175, 0)),
    "gpt-5-3-codex": _thinking(400_000, 128_000, (1.75, 14, 0.175, 0)),
    "gpt-5-4": _thinking(1_050_000, 128_000, (2.5, 15, 0.25, 0)),
    "gpt-5-4-mini": _thinking(400_000, 128_000, (0.75, 4.5, 0.075, 0)),
    "gpt-5-4-nano": _thinking(400_000, 128_000, (0.2, 1.25, 0.02, 0)),
    "gpt-5-5": _thinking(1_000_000, 128_000, (5, 30, 0.5, 0)),
    "gpt-5-6": _thinking(1_050_000, 128_000, (2, 12, 0.2, 2.5)),
    "gpt-5-6-luna": _thinking(1_050_000, 128_000, (0.2, 1.2, 0.02, 0.25)),
    "gpt-5-6-sol": _thinking(1_050_000, 128_000, (4, 20, 0.4, 5)),
    "gpt-6": _thinking(1_050_000, 128_000, (2, 10, 0.2, 2.5)),
    "gpt-6-astra": _thinking(1_050_000, 128_000, (10, 50, 1, 12.5)),
    "gpt-6-luna": _thinking(1_050_000, 128_000, (0.1, 0.5, 0.01, 0.125)),
    "gpt-6-1-sol": _thinking(1_050_000, 128_000, (2, 10, 0.1, 2.5)),
    "gpt-6-1-terra": _thinking(1_050_000, 128_000, (1, 5, 0.05, 1.25)),
    "gpt-oss": _thinking(131_072, 32_768, FREE, images=False),
    "o1": _thinking(200_000, 100_000, (15, 60, 7.5, 0)),
    "o3": _thinking(200_000, 100_000, (2, 8, 0.5, 0)),
    "o3-mini": _thinking(200_000, 100_000, (1.1, 4.4, 0.55, 0), images=False),
    "o4-mini": _thinking(200_000, 100_000, (1.1, 4.4, 0.275, 0)),
    # Google
    "gemini": _thinking(1_000_000, 65_536, FREE),
    "gemini-2-0-flash": _vision(1_048_576, 8_192, (0.1, 0.4, 0.025, 0)),
    "gemini-2-5-flash": _thinking(1_048_576, 65_536, (0.3, 2.5, 0.03, 0)),
    "gemini-2-5-flash-lite": _thinking(1_048_576, 65_536, (0.1, 0.4, 0.01, 0)),
    "gemini-2-5-pro": _thinking(1_048_576, 65_536, (1.25, 10, 0.125, 0)),
    "gemini-3-pro": _thinking(1_048_576, 65_536, (2, 12, 0.2, 0)),
    "gemini-3-flash": _thinking(1_048_576, 65_536, (0.5, 3, 0.05, 0)),
    "gemini-3-1-pro": _thinking(1_048_576, 65_536, (2, 12, 0.2, 0)),
    "gemini-3-1-flash-lite": _thinking(1_000_000, 65_536, (0.25, 1.5, 0.025, 0)),
    "gemini-3-5-flash": _thinking(1_000_000, 65_536, (1.5, 9, 0.15, 0)),
    "gemini-3-5-flash-lite": _thinking(1_000_000, 65_536, (0.3, 2.5, 0.03, 0)),
    "gemini-4-argon": _thinking(1_048_576, 65_536, (4, 20, 0.2, 0)),
    # DeepSeek
    "deepseek": _text(128_000, 8_192, (0.27, 1.1, 0.07, 0)),
    "deepseek-reasoner": _thinking(128_000, 32_768, (0.55, 2.19, 0.14, 0), images=False),
    "deepseek-flash": _thinking(1_000_000, 65_536, (0.3, 1.2, 0.006, 0), images=False),
    "deepseek-v4": _thinking(1_000_000, 65_536, (1.32, 3.96, 0.044, 0), images=False),
    "deepseek-v4-flash": _thinking(1_000_000, 65_536, (0.3, 1.2, 0.006, 0), images=False),
}


def known_model(name: str, default: ModelInfo = DEFAULT) -> ModelInfo:
    """What is known about a model, or `default`."""
    plain = name.rpartition("/")[2].lower().replace(".", "-")
    found = [prefix for prefix in KNOWN if _begins(plain, prefix)]
    return KNOWN[max(found, key=len)] if found else default


def _begins(name: str, prefix: str) -> bool:
    """Whole parts only: `gpt-5` begins `gpt-5-mini`, and not `gpt-50`."""
    return name == prefix or (name.startswith(prefix) and name[len(prefix)] in "-:@")

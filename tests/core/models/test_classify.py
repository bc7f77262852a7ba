"""Error texts, statuses and codes against the classes they must become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamella.errors import (
    ConfigError,
    ContextOverflow,
    ModelAuthError,
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelTransient,
    ThinkingRejected,
)
from lamella.models.classify import (
    check_patterns,
    classify_error,
    is_context_overflow,
    is_retryable_text,
    observed_tokens,
    usage_overflows,
)
from lamella.types.message_json import parse_usage
from lamella.types.messages import AssistantMessage

DATA = Path(__file__).parents[2] / "data" / "models"

# Where lamella answers otherwise than Pi, and why.
DEVIATIONS = {
    "ThrottlingException: Too many tokens, please wait before trying again.": (
        "Bedrock's throttling: it passes by itself, so compacting would lose history for nothing"
    ),
}


def rows(name: str) -> list[dict[str, Any]]:
    return json.loads((DATA / name).read_text("utf-8"))


def newest(values: dict[str, bool]) -> bool:
    return values[max(values, key=lambda version: tuple(int(n) for n in version.split(".")))]


@pytest.mark.parametrize("row", rows("overflow_texts.json"), ids=lambda row: row["text"])
def test_overflow_texts_in_many_wordings_and_languages(row: dict[str, Any]) -> None:
    assert isinstance(classify_error(row["text"]), ContextOverflow) is row["overflow"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("prompt is too long: 213,462 tokens > 200,000 maximum", 213_462),
        ("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens", 9000),
        ("maximum context length is 8192 tokens, your messages resulted in 12345 tokens", 12_345),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_200_000),
        ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context", 40_000),
        ("上下文过长", None),
        ("Error 400: context_length_exceeded", None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_e13_the_size_that_a_server_tells_is_read(text: str, tokens: int | None) -> None:
    error = classify_error(text)
    assert isinstance(error, ContextOverflow)
    assert error.tokens == observed_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "certain"),
    [("413 Request Entity Too Large", False), ("413 prompt is too long", True), ("context_overflow", True)],
)
def test_e14_k57_a_413_without_words_of_a_model_is_no_certain_overflow(text: str, certain: bool) -> None:
    error = classify_error(text)
    assert isinstance(error, ContextOverflow)
    assert error.certain is certain


OVERFLOW_ROWS = rows("pi_context_overflow.json")


@pytest.mark.parametrize(
    "row", [r for r in OVERFLOW_ROWS if "error" in r and "stop" not in r], ids=lambda r: r["error"]
)
def test_overflow_errors_as_pi_sees_them(row: dict[str, Any]) -> None:
    expected = newest(row["overflow"]) and row["error"] not in DEVIATIONS
    assert is_context_overflow(row["error"], provider=row.get("provider", "")) is expected


@pytest.mark.parametrize("row", [r for r in OVERFLOW_ROWS if "stop" in r], ids=str)
def test_silent_overflow_as_pi_sees_it(row: dict[str, Any]) -> None:
    reply = AssistantMessage((), usage=parse_usage(row.get("usage")), stop_reason=row["stop"])
    assert usage_overflows(reply, row.get("window", 0)) is newest(row["overflow"])


def test_unknown_window_never_counts_as_silent_overflow() -> None:
    usage = parse_usage({"input": 10**9})
    assert not usage_overflows(AssistantMessage((), usage=usage), 0)
    assert not usage_overflows(AssistantMessage(()), 1000)


@pytest.mark.parametrize("row", rows("pi_retryable_errors.json"), ids=lambda row: row["error"])
def test_retryable_errors_as_pi_sees_them(row: dict[str, Any]) -> None:
    assert is_retryable_text(row["error"]) is newest(row["retryable"])


@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        (400, "context_length_exceeded", "This model's maximum context length is 8192 tokens."),
        (400, "exceed_context_size_error", "request (5000 tokens) exceeds the available context size (4096 tokens)"),
        (400, None, "the input length exceeds the context length"),
        (500, "api_error", "prompt too long; exceeded max context length by 4 tokens"),
        (400, None, "the model is loaded with context length of only 4096 tokens"),
        (
            400,
            "3051",
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context",
        ),
        (400, None, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
        (413, "request_too_large", "Request exceeds the maximum allowed number of bytes."),
        (413, None, "Payload Too Large"),
        (400, None, "Input length (70000 tokens) is longer than the model's context length (65536 tokens)."),
        (400, None, "Range of input length should be [1, 30720]"),
        (400, None, "The prompt has 9000 tokens, but the configured context size is 8192 tokens"),
        (400, None, "Requested input exceeds the maximum allowed input length of 100 tokens"),
        (400, "ContextWindowExceededError", "litellm failed"),
        (400, None, "Die maximale Kontextlänge wurde überschritten"),
        (400, None, "La longueur du contexte dépasse la limite du modèle"),
        (400, None, "Se ha excedido la longitud máxima del contexto"),
        (400, None, "Превышена максимальная длина контекста"),
        (400, None, "提示词过长"),
    ],
)
def test_servers_that_say_overflow_in_their_own_way(status: int, code: str | None, text: str) -> None:
    error = classify_error(text, status=status, code=code)
    assert isinstance(error, ContextOverflow)
    assert error.status == status
    assert not error.retryable


@pytest.mark.parametrize(
    ("status", "code", "text", "kind"),
    [
        (429, "rate_limit_exceeded", "slow down", ModelRateLimited),
        (
            413,
            "rate_limit_exceeded",
            "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000",
            ModelRateLimited,
        ),
        (429, "insufficient_quota", "You exceeded your current quota, please check your plan.", ModelRejected),
        (400, "invalid_request_error", "Your credit balance is too low to access the API.", ModelRejected),
        (402, None, "Insufficient Balance", ModelRejected),
        (429, "RESOURCE_EXHAUSTED", "Quota exceeded for metric requests_per_minute", ModelRateLimited),
        (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your billing", ModelRejected),
        (401, None, "no", ModelAuthError),
        (403, None, "not for you", ModelAuthError),
        (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", ModelAuthError),
        (500, None, "whatever", ModelTransient),
        (529, "overloaded_error", "Overloaded", ModelTransient),
        (408, None, "request timeout", ModelTransient),
        (404, "model_not_found", "The model `x` does not exist", ModelRejected),
        (400, "invalid_value", "Invalid value for 'temperature'", ModelRejected),
        (400, None, "max_tokens: 500000 > 64000, the maximum number of output tokens", ModelRejected),
        (422, None, "request timeout is not a known field", ModelRejected),
        (None, None, "Connection error.", ModelTransient),
        (None, None, "[Errno 111] Connection refused", ModelTransient),
        (None, "overloaded_error", "", ModelTransient),
    ],
)
def test_other_errors(status: int | None, code: str | None, text: str, kind: type[ModelError]) -> None:
    assert type(classify_error(text, status=status, code=code)) is kind


def test_a_quota_that_comes_back_soon_is_a_rate_limit() -> None:
    error = classify_error(
        "You exceeded your current quota, please check your plan and billing details.", status=429, retry_after=21.5
    )
    assert isinstance(error, ModelRateLimited)
    assert error.retry_after == 21.5


def test_extra_patterns_mark_overflows() -> None:
    text = "E-77: Der Rucksack ist voll"
    assert not is_context_overflow(text)
    assert isinstance(classify_error(text, status=400, patterns=("rucksack ist voll",)), ContextOverflow)


def test_bad_extra_pattern_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        check_patterns(("fine", "(broken"))
    assert [problem.path for problem in caught.value.problems] == ["models.overflow_patterns[1]"]
    assert "(broken" in str(caught.value)


@given(st.sampled_from([r["text"] for r in rows("overflow_texts.json") if r["overflow"]]), st.randoms())
def test_case_and_joiners_do_not_matter(text: str, random: Any) -> None:
    # A change of case inside a word would read as camel case; whole words may be shouted or not.
    words = [random.choice((w.upper(), w.lower())) for w in text.split(" ")]
    joined = "".join(random.choice(" _-") if c in " _" else c for c in " ".join(words))
    assert is_context_overflow(joined)


@given(st.text(), st.one_of(st.none(), st.integers(400, 599)), st.one_of(st.none(), st.text()))
def test_any_text_gets_exactly_one_class(text: str, status: int | None, code: str | None) -> None:
    error = classify_error(text, status=status, code=code)
    assert str(error) == text
    assert error.status == status
    assert isinstance(error, ContextOverflow) is is_context_overflow(text, status=status, code=code)


@pytest.mark.parametrize(
    "text",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.5.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
        "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
        "messages.1.content.0.thinking.signature: Field required",
        "Thought signature is not valid",
        "Corrupted thought signature.",
        "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.",
        "The encrypted content gAAA could not be verified.",
    ],
)
def test_refused_thinking_is_known(text: str) -> None:
    assert isinstance(classify_error(text, status=400), ThinkingRejected)
    assert not classify_error(text, status=400).retryable


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens must be greater than thinking.budget_tokens",
        "Thinking is not supported by this model.",
        "Function call is missing a thought_signature in functionCall parts.",
        "reasoning is required for this model",
        "messages.0.content: blocks must not be empty",
    ],
)
def test_what_leaving_thinking_out_does_not_help_is_another_refusal(text: str) -> None:
    assert type(classify_error(text, status=400)) is ModelRejected

"""Names, choices and the making of models, with settings as they come from a file."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from provider_server import ProviderServer, Reply

from lamella.config.structure import structure
from lamella.errors import ConfigError, MissingExtra, UsageError
from lamella.models.known import DEFAULT, KNOWN, known_model
from lamella.models.registry import builtin_providers, choose_model, make_model, model_info, parse_model_ref
from lamella.types.messages import UserMessage, text_of
from lamella.types.model import Done, Model, ModelChoice, ModelProvider, ModelRequest
from lamella.types.model_settings import ModelOverrides, ProviderSettings

PROVIDERS = builtin_providers()


def settings(**tables: Mapping[str, Any]) -> dict[str, ProviderSettings]:
    """Provider settings as the configuration makes them."""
    found = {}
    for name, table in tables.items():
        value, problems = structure(ProviderSettings, table)
        assert value is not None, problems
        found[name] = value
    return found


def choose(
    flag: str = "",
    variable: str = "",
    configured: str = "",
    providers: Mapping[str, ModelProvider] = PROVIDERS,
    **env: str,
) -> ModelChoice:
    return choose_model(flag, variable, configured, env, providers)


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("anthropic/claude-opus-5", ("anthropic", "claude-opus-5")),
        (" OpenAI/gpt-5 ", ("openai", "gpt-5")),
        ("openrouter/anthropic/claude-sonnet-5", ("openrouter", "anthropic/claude-sonnet-5")),
        ("ollama/qwen3:8b", ("ollama", "qwen3:8b")),
        ("offline", ("offline", "")),
    ],
)
def test_references(text: str, expected: tuple[str, str]) -> None:
    assert parse_model_ref(text) == expected


@pytest.mark.parametrize("text", ["", "  ", "/gpt-5", "my model/x"])
def test_references_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="expected provider/model"):
        parse_model_ref(text)


# --- choice ---------------------------------------------------------------------------------------


def test_order_of_choice() -> None:
    env = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    all_four = ("openai/a", "openai/b", "openai/c")
    assert choose(*all_four, **env) == ModelChoice("openai", "a", "--model")
    assert choose("", *all_four[1:], **env) == ModelChoice("openai", "b", "LAMELLA_MODEL")
    assert choose("", "", "openai/c", **env) == ModelChoice("openai", "c", "agent.model")
    by_key = choose(**env)
    assert (by_key.provider, by_key.source, by_key.note) == ("anthropic", "ANTHROPIC_API_KEY", "")
    assert choose(GOOGLE_API_KEY="k").provider == "gemini"


def test_without_anything_the_offline_model_runs_and_says_why() -> None:
    choice = choose()
    assert (choice.provider, choice.model) == ("offline", "rules")
    assert "no API key" in choice.note
    assert "\n" not in choice.note


def test_a_blank_key_is_no_key() -> None:
    assert choose(OPENAI_API_KEY=" ").provider == "offline"


def test_a_key_without_its_package_does_not_win() -> None:
    providers = {**PROVIDERS, "anthropic": evolve(PROVIDERS["anthropic"], available=False)}
    choice = choose(providers=providers, ANTHROPIC_API_KEY="k")
    assert choice.provider == "offline"
    assert "pip install 'lamella[anthropic]'" in choice.note
    assert choose(providers=providers, ANTHROPIC_API_KEY="k", OPENAI_API_KEY="k").provider == "openai"


def test_provider_alone_means_its_default_model() -> None:
    assert choose("offline").model == "rules"
    assert choose("anthropic").model == PROVIDERS["anthropic"].default_model
    with pytest.raises(UsageError, match="expected ollama/MODEL"):
        choose("ollama")


def test_unknown_provider_is_named_with_its_neighbour_and_the_list() -> None:
    with pytest.raises(UsageError) as caught:
        choose("antropic/claude")
    text = str(caught.value)
    assert "'antropic'" in text
    assert "did you mean anthropic?" in text
    assert "ollama, openai" in text
    assert "--model" in text


# --- making models --------------------------------------------------------------------------------


def make(reference: str, tables: dict[str, ProviderSettings] | None = None, **env: str) -> Model:
    tables = tables or {}
    providers = builtin_providers(tables)
    choice = choose_model(reference, "", "", env, providers)
    return make_model(choice, providers, tables, env)


@pytest.mark.parametrize(
    ("reference", "variable", "api"),
    [
        ("openai/gpt-4.1", "OPENAI_API_KEY", "openai-completions"),
        ("anthropic/claude-haiku-4-5", "ANTHROPIC_API_KEY", "anthropic-messages"),
        ("gemini/gemini-2.5-pro", "GEMINI_API_KEY", "google-generative-ai"),
        ("gemini/gemini-2.5-pro", "GOOGLE_API_KEY", "google-generative-ai"),
        ("openrouter/anthropic/claude-haiku-4.5", "OPENROUTER_API_KEY", "openai-completions"),
        ("deepseek/deepseek-chat", "DEEPSEEK_API_KEY", "openai-completions"),
    ],
)
def test_models_of_built_in_providers(reference: str, variable: str, api: str) -> None:
    model = make(reference, **{variable: "k"})
    assert isinstance(model, Model)
    assert (f"{model.provider}/{model.id}", model.api) == (reference, api)


def test_a_missing_key_names_the_variable() -> None:
    with pytest.raises(ConfigError) as caught:
        make("anthropic/claude-haiku-4-5")
    assert [p.path for p in caught.value.problems] == ["models.providers.anthropic"]
    assert "ANTHROPIC_API_KEY" in str(caught.value)
    assert "ANTHROPIC_API_KEY" in caught.value.hint


def test_ollama_needs_no_key_and_has_a_modest_window() -> None:
    model = make("ollama/some-model")
    assert model.context_window == 32_768


def test_offline_and_scripted(tmp_path: Path) -> None:
    assert make("offline").id == "rules"
    with pytest.raises(UsageError, match="there is only offline/rules"):
        make("offline/gpt")
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "Hello"}]), "utf-8")
    assert make(f"scripted/{script}").provider == "scripted"


async def test_a_configured_provider_is_reached_as_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    with ProviderServer() as server:
        server.script([Reply("Hi there")])
        tables = settings(
            house={
                "api": "anthropic",
                "base_url": server.url,
                "api_key_env": "HOUSE_KEY",
                "headers": {"x-team": "ferns"},
                "models": {
                    "oak": {"context_window": 5_000, "max_output": 700, "supports_images": True, "cost_input": 2}
                },
            }
        )
        model = make("house/oak", tables, HOUSE_KEY="secret-1", ANTHROPIC_API_KEY="not this one")
        assert (model.context_window, model.max_output, model.supports_images) == (5_000, 700, True)
        events = [e async for e in model.stream(ModelRequest((UserMessage("Hi"),)))]
        assert isinstance(events[-1], Done)
        assert text_of(events[-1].message.content) == "Hi there"
        assert events[-1].message.usage is not None
        assert events[-1].message.usage.cost.input == pytest.approx(20 * 2 / 1e6)
        headers = server.requests[0].headers
        assert headers["x-api-key"] == "secret-1"
        assert headers["x-team"] == "ferns"
        assert server.requests[0].body["max_tokens"] == 700
        assert choose_model("", "", "", {"HOUSE_KEY": "x"}, builtin_providers(tables)).model == "oak"


def test_a_key_variable_of_ones_own_takes_the_place_of_the_usual_one() -> None:
    tables = settings(openai={"api_key_env": "WORK_KEY"})
    with pytest.raises(ConfigError, match="WORK_KEY is not set"):
        make("openai/gpt-4.1", tables, OPENAI_API_KEY="private")
    assert make("openai/gpt-4.1", tables, WORK_KEY="k").provider == "openai"


def test_a_configured_key_counts_for_the_choice_and_is_never_shown() -> None:
    tables = settings(deepseek={"api_key": "sk-hidden"})
    assert choose_model("", "", "", {}, builtin_providers(tables)).provider == "deepseek"
    assert "sk-hidden" not in repr(tables)
    assert "sk-hidden" not in repr(make("deepseek/deepseek-chat", tables))


def test_wrong_provider_settings_are_all_named() -> None:
    tables = settings(opnai={"api_key": "k"}, offline={"api_key": "k"})
    with pytest.raises(ConfigError) as caught:
        builtin_providers(tables)
    text = str(caught.value)
    assert "models.providers.opnai.base_url" in text
    assert "did you mean openai?" in text
    assert "models.providers.offline" in text


@pytest.mark.parametrize(
    ("table", "path", "expected"),
    [
        ({"base_url": "localhost:1"}, "base_url", "expected a URL"),
        ({"api": "grpc"}, "api", "expected one of openai-chat, anthropic, gemini"),
        ({"timeout": 0}, "timeout", "expected more than 0"),
        ({"models": {"m": {"context_window": -1}}}, "models.m.context_window", "expected more than 0"),
        ({"models": {"m": {"cost_input": -1}}}, "models.m.cost_input", "expected 0 or more"),
    ],
)
def test_wrong_values_in_settings(table: dict[str, Any], path: str, expected: str) -> None:
    _, problems = structure(ProviderSettings, table)
    assert [p.path for p in problems] == [path]
    assert expected in problems[0].message


def test_bad_overflow_pattern_is_refused_before_the_first_call() -> None:
    choice = ModelChoice("offline", "rules", "test")
    with pytest.raises(ConfigError, match=r"overflow_patterns\[0\]"):
        make_model(choice, PROVIDERS, {}, {}, overflow_patterns=("(",))


def test_missing_package_prints_the_command(tmp_path: Path) -> None:
    """In a process of its own, where the client packages cannot be found."""
    code = """
        import sys

        class Blocked:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in ("pydantic_ai", "anthropic"):
                    raise ModuleNotFoundError(name)
                return None

        sys.meta_path.insert(0, Blocked())
        from lamella.errors import MissingExtra
        from lamella.models.registry import builtin_providers, choose_model, make_model

        env = {"ANTHROPIC_API_KEY": "k"}
        providers = builtin_providers()
        print(choose_model("", "", "", env, providers).note)
        try:
            make_model(choose_model("anthropic/x", "", "", env, providers), providers, {}, env)
        except MissingExtra as error:
            print(error, "|", error.hint)
    """
    out = _run(code)
    assert "ANTHROPIC_API_KEY is set" in out
    assert "the anthropic provider needs an optional package | pip install 'lamella[anthropic]'" in out


def test_the_registry_imports_no_provider_library() -> None:
    code = """
        import sys
        from lamella.models.registry import builtin_providers, choose_model

        choose_model("", "", "", {"OPENAI_API_KEY": "k"}, builtin_providers())
        print([m for m in ("pydantic_ai", "openai", "anthropic", "google.genai", "httpx2") if m in sys.modules])
    """
    assert _run(code).strip() == "[]"


def _run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_missing_extra_is_an_import_error() -> None:
    assert issubclass(MissingExtra, ImportError)


# --- known models ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("claude-sonnet-4-6-20260101", "claude-sonnet-4-6"),
        ("anthropic/claude-sonnet-4.6", "claude-sonnet-4-6"),
        ("claude-opus-4-1-20250805", "claude-opus-4"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-5.4-mini", "gpt-5-4-mini"),
        ("gpt-5-mini", "gpt-5-mini"),
        ("gpt-4.1", "gpt-4-1"),
        ("models/gemini-2.5-flash-lite", "gemini-2-5-flash-lite"),
        ("GPT-5", "gpt-5"),
    ],
)
def test_longest_known_beginning_wins(name: str, prefix: str) -> None:
    assert known_model(name) is KNOWN[prefix]


def test_unknown_models_get_a_sane_default() -> None:
    assert known_model("gpt-50") is DEFAULT
    assert known_model("llama3.3:70b") is DEFAULT
    assert DEFAULT.context_window == 128_000


@given(st.sampled_from(sorted(KNOWN)), st.text("abc019-", max_size=8))
def test_more_specific_names_stay_in_the_family(prefix: str, rest: str) -> None:
    assert known_model(f"{prefix}-{rest}") is not DEFAULT


def test_known_values_are_plausible() -> None:
    for name, info in KNOWN.items():
        assert 0 < info.max_output <= info.context_window, name
        assert min(info.cost_input, info.cost_output, info.cost_cache_read, info.cost_cache_write) >= 0, name
        assert info.cost_cache_read <= info.cost_input <= info.cost_output, name


def test_overrides_replace_only_what_they_name() -> None:
    known = known_model("claude-haiku-4-5")
    info = model_info(
        "claude-haiku-4-5", {"claude-haiku-4-5": ModelOverrides(context_window=1_000, supports_images=False)}
    )
    assert info == evolve(known, context_window=1_000, supports_images=False)
    assert model_info("claude-haiku-4-5", {"other": ModelOverrides(context_window=1)}) is known

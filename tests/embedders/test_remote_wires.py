"""What each provider is sent and how its answers are read, against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from embed_server import EmbedServer, vector_of

from lamella.errors import ConfigError
from lamella.types.memory import Embedder
from lamella_embedders.config import REMOTE, RemoteSettings
from lamella_embedders.remote.embedder import RemoteEmbedder
from lamella_embedders.remote.keys import NoKey
from lamella_embedders.remote.opening import open_remote
from lamella_embedders.remote.wire import Provider

TEXTS = ("The backup runs at night.", "我们领养了一只小猫。", "naïve café", "🙂 emoji")
BASE = {"openai": "/v1", "gemini": "/v1beta", "voyage": "/v1", "mistral": "/v1", "ollama": ""}
PATH = {
    "openai": "/v1/embeddings",
    "gemini": "/v1beta/models/some-model:batchEmbedContents",
    "voyage": "/v1/embeddings",
    "mistral": "/v1/embeddings",
    "ollama": "/api/embed",
}


def provider(name: str) -> Provider:
    found: Provider = import_module(f"lamella_embedders.remote.{name}").PROVIDER
    return found


@pytest.fixture
def server() -> Iterator[EmbedServer]:
    with EmbedServer(dimensions=8) as server:
        yield server


def opened(name: str, server: EmbedServer, **settings: Any) -> RemoteEmbedder:
    own = RemoteSettings(**{"model": "some-model", "base_url": server.url + BASE[name], **settings})
    return open_remote(provider(name), own, environ={})


def unit(text: str, dimensions: int = 8) -> Any:
    vector = np.array(vector_of(text, dimensions))
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("name", REMOTE)
def test_vectors_come_back_in_order_and_with_unit_length(name: str, server: EmbedServer) -> None:
    embedder = opened(name, server, batch_items=3, api_key="k-123")
    assert isinstance(embedder, Embedder)
    vectors = embedder.embed_documents(TEXTS)
    assert vectors.shape == (4, 8)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [unit(text) for text in TEXTS], atol=1e-6)
    np.testing.assert_allclose(embedder.embed_query("where?"), unit("where?"), atol=1e-6)
    assert {request.path for request in server.requests} == {PATH[name]}


@pytest.mark.parametrize("name", REMOTE)
def test_length_of_unknown_models_is_asked_for_once(name: str, server: EmbedServer) -> None:
    embedder = opened(name, server)
    assert embedder.dimensions == 8
    assert len(server.requests) == 1
    opened(name, server, dimensions=8)
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", REMOTE)
def test_identity_names_provider_model_length_and_a_foreign_address(name: str, server: EmbedServer) -> None:
    assert opened(name, server).identity == f"{name}/some-model/8@{server.url}{BASE[name]}"


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("openai", "openai/text-embedding-3-small/1536"),
        ("gemini", "gemini/gemini-embedding-001/3072"),
        ("voyage", "voyage/voyage-4-large/1024"),
        ("mistral", "mistral/mistral-embed/1024"),
    ],
)
def test_known_models_open_without_a_request(name: str, identity: str) -> None:
    environ = dict.fromkeys(provider(name).key_env, "k")
    assert open_remote(provider(name), environ=environ).identity == identity


def test_a_model_may_carry_its_providers_name() -> None:
    own = RemoteSettings(model="openai/text-embedding-3-large", api_key="k")
    assert open_remote(provider("openai"), own, environ={}).identity == "openai/text-embedding-3-large/3072"


def test_what_the_wires_say(server: EmbedServer) -> None:
    said = {}
    for name in REMOTE:
        embedder = opened(name, server, dimensions=8)
        embedder.embed_documents(["a note"])
        embedder.embed_query("a question")
        said[name] = [request.body for request in server.requests[-2:]]
    plain = {"model": "some-model", "input": ["a note"]}
    asked = {"model": "some-model", "input": ["a question"]}
    assert said["openai"] == [{**plain, "dimensions": 8}, {**asked, "dimensions": 8}]
    assert said["mistral"] == [{**plain, "output_dimension": 8}, {**asked, "output_dimension": 8}]
    assert said["voyage"] == [
        {**plain, "input_type": "document", "output_dimension": 8},
        {**asked, "input_type": "query", "output_dimension": 8},
    ]
    assert said["ollama"][0] == {**plain, "truncate": True, "dimensions": 8}
    common = {"model": "models/some-model", "outputDimensionality": 8}
    assert said["gemini"] == [
        {"requests": [{**common, "taskType": "RETRIEVAL_DOCUMENT", "content": {"parts": [{"text": "a note"}]}}]},
        {"requests": [{**common, "taskType": "RETRIEVAL_QUERY", "content": {"parts": [{"text": "a question"}]}}]},
    ]


def test_ollama_models_get_the_prefixes_that_they_were_trained_with(server: EmbedServer) -> None:
    embedder = opened("ollama", server, model="nomic-embed-text:latest", dimensions=8)
    embedder.embed_documents(["a note"])
    embedder.embed_query("a question")
    assert server.texts() == ["search_document: a note", "search_query: a question"]


# --- keys ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REMOTE)
def test_the_key_travels_in_its_header_only(name: str, server: EmbedServer) -> None:
    opened(name, server, api_key=" k-123 ").embed_query("q")
    for request in server.requests:
        carried = {header for header, value in request.headers.items() if "k-123" in value}
        assert carried == {"x-goog-api-key" if name == "gemini" else "authorization"}
        assert "k-123" not in request.path


def test_a_named_variable_holds_the_key(server: EmbedServer) -> None:
    own = RemoteSettings(model="m", base_url=server.url, api_key_env="MY_KEY")
    open_remote(provider("openai"), own, environ={"MY_KEY": "k-9", "OPENAI_API_KEY": "k-other"})
    assert server.requests[0].headers["authorization"] == "Bearer k-9"


def test_a_key_of_the_provider_is_not_sent_to_another_address(server: EmbedServer) -> None:
    own = RemoteSettings(model="m", base_url=server.url)
    open_remote(provider("openai"), own, environ={"OPENAI_API_KEY": "k-secret"})
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("name", ["openai", "gemini", "voyage", "mistral"])
def test_a_missing_key_is_named(name: str) -> None:
    with pytest.raises(NoKey, match=provider(name).key_env[0]) as caught:
        open_remote(provider(name), environ={})
    assert isinstance(caught.value, ConfigError)
    assert str(caught.value).startswith(f"plugins.config.embedders.{name}: no key")
    assert "export" in caught.value.hint


@pytest.mark.parametrize("key", ["two words", "línea", "a\nb"])
def test_what_cannot_be_a_key_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_remote(provider("openai"), RemoteSettings(api_key=key), environ={})
    assert key not in str(caught.value)
    assert key not in repr(RemoteSettings(api_key=key))


def test_own_headers_are_sent(server: EmbedServer) -> None:
    opened("openai", server, headers={"X-Team": "notes"})
    assert server.requests[0].headers["x-team"] == "notes"


# --- dimensions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings", "wrong"),
    [
        ("openai", {"dimensions": 4_000}, "expected at most 1536, found 4000"),
        ("openai", {"model": "text-embedding-ada-002", "dimensions": 512}, "expected 1536, the only length"),
        ("voyage", {"dimensions": 4_096}, "expected at most 2048"),
    ],
)
def test_lengths_that_a_model_cannot_have(name: str, settings: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ConfigError, match=wrong):
        open_remote(provider(name), RemoteSettings(api_key="k", **settings), environ={})


def test_shorter_vectors_are_asked_for(server: EmbedServer) -> None:
    embedder = opened("openai", server, model="text-embedding-3-large", dimensions=8)
    assert embedder.dimensions == 8
    embedder.embed_query("q")
    assert server.requests[0].body["dimensions"] == 8

"""Providers that fail, dawdle or answer nonsense, and texts that do not fit."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest
from embed_clock import FakeClock
from embed_server import Behaviour, Cut, EmbedServer, Fault, Hang, Raw, Request, Trickle, Vectors, vector_of
from hypothesis import given
from hypothesis import strategies as st

from lamella.errors import ModelAuthError, ModelError, ModelRateLimited, ModelRejected, ModelTransient
from lamella_embedders.config import RemoteSettings
from lamella_embedders.inputs import MOST_PIECES, batches, pieces_of, split
from lamella_embedders.remote import gemini, ollama, openai
from lamella_embedders.remote.embedder import RemoteEmbedder
from lamella_embedders.remote.opening import open_remote
from lamella_embedders.remote.pace import backoff

KEY = "k-very-secret-123"


@pytest.fixture
def server() -> Iterator[EmbedServer]:
    with EmbedServer(dimensions=4) as server:
        yield server


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def opened(server: EmbedServer, clock: FakeClock | None = None, **settings: Any) -> RemoteEmbedder:
    own = RemoteSettings(**{"model": "m", "base_url": server.url, "dimensions": 4, "api_key": KEY, **settings})
    return open_remote(openai.PROVIDER, own, environ={}, clock=clock)


def unit(text: str) -> Any:
    vector = np.array(vector_of(text, 4))
    return vector / np.linalg.norm(vector)


# --- retries ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "least"),
    [
        ([Fault(429, headers={"retry-after": "2"})], [2.0]),
        ([Fault(429, headers={"retry-after-ms": "1500"})], [1.5]),
        ([Fault(429), Fault(429), Fault(429)], [2.0, 4.0, 8.0]),
        ([Fault(500), Fault(500)], [0.5, 1.0]),
        ([Fault(503)], [0.5]),
        ([Fault(408), Fault(409), Fault(425)], [0.5, 1.0, 2.0]),
        ([Cut()], [0.5]),
        ([Fault(503, headers={"retry-after": "7200"})], [60.0]),
    ],
)
def test_what_may_pass_is_tried_again(
    server: EmbedServer, clock: FakeClock, script: list[Behaviour], least: list[float]
) -> None:
    server.script(script)
    vectors = opened(server, clock).embed_documents(["one"])
    np.testing.assert_allclose(vectors, [unit("one")], atol=1e-6)
    assert len(server.requests) == len(script) + 1
    assert [low <= wait <= 1.26 * low for low, wait in zip(least, clock.waits, strict=True)] == [True] * len(least)


def test_a_date_in_retry_after_is_understood(server: EmbedServer, clock: FakeClock) -> None:
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    server.script([Fault(429, headers={"retry-after": when})])
    opened(server, clock).embed_documents(["one"])
    assert 25 <= clock.waits[0] <= 38


def test_gemini_says_in_the_body_when_to_come_back(server: EmbedServer, clock: FakeClock) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}]
    error = {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED", "details": details}
    server.script([Fault(429, {"error": error})])
    own = RemoteSettings(model="m", base_url=server.url, dimensions=4)
    open_remote(gemini.PROVIDER, own, environ={}, clock=clock).embed_documents(["one"])
    assert 17 <= clock.waits[0] <= 21.5


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_will_not_pass_is_tried_once(server: EmbedServer, clock: FakeClock, status: int) -> None:
    server.script([Fault(status, {"error": {"message": "no such thing"}})])
    with pytest.raises(ModelError, match="openai: no such thing") as caught:
        opened(server, clock).embed_documents(["one", "two"])
    assert len(server.requests) == 1
    assert caught.value.status == status
    assert isinstance(caught.value, ModelAuthError if status in (401, 403) else ModelRejected)


def test_a_used_up_quota_is_not_tried_again(server: EmbedServer, clock: FakeClock) -> None:
    error = {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}
    server.script([Fault(429, {"error": error})])
    with pytest.raises(ModelRejected, match="quota"):
        opened(server, clock).embed_documents(["one"])
    assert len(server.requests) == 1


def test_a_dead_provider_is_left_alone_for_a_while(server: EmbedServer, clock: FakeClock) -> None:
    embedder = opened(server, clock)
    server.refuse = lambda _: Fault(503)
    with pytest.raises(ModelTransient):
        embedder.embed_documents(["one"])
    tried = len(server.requests)
    assert 2 <= tried <= 8
    with pytest.raises(ModelTransient, match="not asked again for 30 s") as caught:
        embedder.embed_query("one")
    assert caught.value.retry_after == pytest.approx(30, abs=0.1)
    assert len(server.requests) == tried
    server.refuse = lambda _: None
    clock.pass_time(31)
    np.testing.assert_allclose(embedder.embed_query("one"), unit("one"), atol=1e-6)


def test_a_question_gives_up_early(server: EmbedServer, clock: FakeClock) -> None:
    server.refuse = lambda _: Fault(429, headers={"retry-after": "20"})
    with pytest.raises(ModelRateLimited) as caught:
        opened(server, clock).embed_query("one")
    assert caught.value.retry_after == 20
    assert clock.waits == []  # twenty seconds do not fit into the ten that a question has


def test_a_wait_holds_for_all_requests(server: EmbedServer, clock: FakeClock) -> None:
    embedder = opened(server, clock, batch_items=1, concurrency=1)
    server.script([Fault(429, headers={"retry-after": "5"})])
    embedder.embed_documents(["one", "two", "three"])
    assert len(server.requests) == 4
    assert len(clock.waits) == 1


@given(st.integers(1, 20), st.floats(0, 1e6) | st.none())
def test_waits_are_never_shorter_than_asked_nor_endless(attempt: int, asked: float | None) -> None:
    wait = backoff(ModelRateLimited("slow down", retry_after=asked), attempt)
    least = min(60.0, 2.0 * 2 ** (attempt - 1) if asked is None else asked)
    assert least <= wait <= 1.25 * least


def test_no_server_at_all(clock: FakeClock) -> None:
    with EmbedServer() as gone:
        address = gone.url
    own = RemoteSettings(base_url=address)
    with pytest.raises(ModelTransient, match=f"ollama: {address}: connection failed"):
        open_remote(ollama.PROVIDER, own, environ={}, clock=clock)


# --- time ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", [Hang(), Trickle()])
def test_a_server_that_dawdles_is_given_up(server: EmbedServer, clock: FakeClock, behaviour: Behaviour) -> None:
    server.script([behaviour])
    np.testing.assert_allclose(opened(server, clock, timeout=0.2).embed_documents(["one"]), [unit("one")], atol=1e-6)
    assert len(server.requests) == 2
    server.script([behaviour])
    with pytest.raises(ModelTransient, match=r"no answer within 0\.2 s"):
        opened(server, clock, timeout=0.2, tries=1).embed_documents(["one"])


def test_no_more_requests_at_a_time_than_allowed(server: EmbedServer) -> None:
    server.meet = threading.Barrier(3)  # each request waits for two others
    texts = [f"text {number}" for number in range(9)]
    vectors = opened(server, batch_items=1, concurrency=3).embed_documents(texts)
    np.testing.assert_allclose(vectors, [unit(text) for text in texts], atol=1e-6)
    assert server.most_at_once == 3


def test_the_limit_holds_for_all_calls_together(server: EmbedServer) -> None:
    embedder = opened(server, batch_items=1, concurrency=2)
    server.linger = 0.02
    threads = [threading.Thread(target=embedder.embed_documents, args=([str(n), str(-n)],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.requests) == 8
    assert server.most_at_once <= 2


def test_the_first_failure_ends_the_call(server: EmbedServer, clock: FakeClock) -> None:
    server.refuse = lambda r: Fault(401, {"error": {"message": "who are you?"}}) if "bad" in r.texts else None
    with pytest.raises(ModelAuthError, match="who are you"):
        opened(server, clock, batch_items=1, concurrency=2).embed_documents(["bad", *map(str, range(50))])
    assert len(server.requests) < 51


# --- answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        (Vectors([[1.0, 0, 0, 0]]), "1 vectors came back for 2 texts"),
        (Vectors([[1.0, 0, 0, 0]] * 3), "3 vectors came back for 2 texts"),
        (Vectors([[1.0, 0, 0]] * 2), "expected vectors of 4 numbers, found 3"),
        (Vectors([[1.0, 0, 0, 0], [1.0]]), "expected vectors of 4 numbers, found 1"),
        (Vectors([[1.0, 0, 0, float("nan")], [1.0, 0, 0, 0]]), "not finite"),
        (Vectors([[1.0, 0, 0, float("inf")], [1.0, 0, 0, 0]]), "not finite"),
        (Vectors([[1.0, 0, 0, None], [1.0, 0, 0, 0]]), "not (finite|a number)"),
        (Vectors([[1.0, 0, 0, "x"], [1.0, 0, 0, 0]]), "not a number"),
        (Vectors([[0.0] * 4, [1.0, 0, 0, 0]]), "all zeros"),
        (Vectors(["AAAA", "AAAA"]), "expected vectors, found str"),
        (Raw('{"data": {}}'), "a list of data"),
        (Raw('{"data": [1, 2]}'), "objects in data"),
        (Raw('{"data": [{"index": 0, "embedding": []}, {"index": 0, "embedding": []}]}'), "not numbered"),
        (Raw("[]"), "a list of data"),
        (Raw("<html>hello</html>"), "not JSON"),
        (Raw(""), "not JSON"),
    ],
)
def test_nonsense_is_an_error_and_no_vector(
    server: EmbedServer, clock: FakeClock, behaviour: Behaviour, message: str
) -> None:
    server.script([behaviour])
    with pytest.raises(ModelError, match=message):
        opened(server, clock).embed_documents(["one", "two"])
    assert len(server.requests) == 1


def test_a_redirect_is_not_followed(server: EmbedServer, clock: FakeClock) -> None:
    with EmbedServer() as other:
        server.script([Fault(307, "", {"location": other.url + "/embeddings"})])
        with pytest.raises(ModelRejected, match="redirect"):
            opened(server, clock).embed_documents(["one"])
        assert other.requests == []


@pytest.mark.parametrize("status", [401, 500, 429])
def test_the_key_is_neither_logged_nor_shown(
    server: EmbedServer, clock: FakeClock, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    caplog.set_level(logging.DEBUG)
    server.refuse = lambda _: Fault(status, {"error": {"message": f"Incorrect API key provided: {KEY}"}})
    embedder = opened(server, clock)
    with pytest.raises(ModelError, match=r"provided: \*\*\*") as caught:
        embedder.embed_documents(["one"])
    shown = caplog.text + str(caught.value) + caught.value.hint + repr(vars(embedder)) + embedder.identity
    assert KEY not in shown


# --- texts --------------------------------------------------------------------------------------------------


def test_blank_texts_are_not_sent(server: EmbedServer) -> None:
    vectors = opened(server).embed_documents(["", "one", " \n\t", "\0"])
    assert server.texts() == ["one"]
    np.testing.assert_allclose(vectors, [[0] * 4, unit("one"), [0] * 4, [0] * 4], atol=1e-6)
    assert opened(server).embed_documents([]).shape == (0, 4)
    assert len(server.requests) == 1


def test_lone_surrogates_and_nul_are_replaced(server: EmbedServer) -> None:
    opened(server).embed_documents(["a\ud83d b", "备份\udc00数据", "\ud83d\ude00", "x\0y"])
    assert server.texts() == ["a\ufffd b", "备份\ufffd数据", "😀", "x y"]


def test_one_long_text_does_not_fail_the_batch(server: EmbedServer) -> None:
    server.refuse = lambda r: Fault(400, "maximum context length") if max(map(len, r.texts)) > 8_000 else None
    texts = [*(f"small {number}" for number in range(63)), "word " * 8_000]
    vectors = opened(server).embed_documents(texts)
    np.testing.assert_allclose(vectors[:63], [unit(text) for text in texts[:63]], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert len(server.requests) == 2  # the limit is known: nothing had to be refused first


def test_a_long_text_is_the_mean_of_its_parts(server: EmbedServer) -> None:
    text = "aaaa bbbb " + "c" * 5
    vector = opened(server, input_bytes=10).embed_query(text)
    assert server.texts() == ["aaaa bbbb", "ccccc"]
    mean = 9 * unit("aaaa bbbb") + 5 * unit("ccccc")
    np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)


@pytest.mark.parametrize(
    "refusal",
    [
        Fault(413, "Payload Too Large"),
        Fault(422, {"error": "batch size 9 > maximum allowed batch size 2", "error_type": "Validation"}),
        Fault(400, {"message": "Too many inputs in request, split into more batches."}),
        Fault(500, {"error": "the input length exceeds the context length"}),
    ],
)
def test_a_batch_that_is_too_large_goes_in_halves(server: EmbedServer, clock: FakeClock, refusal: Fault) -> None:
    server.refuse = lambda r: refusal if len(r.texts) > 2 else None
    texts = [f"text {number}" for number in range(9)]
    np.testing.assert_allclose(opened(server, clock).embed_documents(texts), [unit(t) for t in texts], atol=1e-6)


@pytest.mark.parametrize("text", ["word " * 400, "备份数据库" * 130])
def test_a_text_that_is_refused_for_its_size_goes_in_parts(server: EmbedServer, text: str) -> None:
    def refuse(request: Request) -> Behaviour:
        long = any(len(t.encode()) > 600 for t in request.texts)
        return Fault(400, {"error": {"message": "This model's maximum context length is 512 tokens"}}) if long else None

    server.refuse = refuse
    vectors = opened(server).embed_documents(["short", text, "other"])
    np.testing.assert_allclose(vectors[[0, 2]], [unit("short"), unit("other")], atol=1e-6)
    assert np.linalg.norm(vectors[1]) == pytest.approx(1.0, abs=1e-5)


def test_a_server_that_refuses_every_size_ends_it(server: EmbedServer) -> None:
    server.refuse = lambda _: Fault(413, "Payload Too Large")
    with pytest.raises(ModelError):
        opened(server).embed_documents(["word " * 400] * 4)
    assert len(server.requests) < 12


def test_batches_keep_to_their_size(server: EmbedServer) -> None:
    opened(server, batch_items=5, batch_bytes=40).embed_documents(["ten bytes!"] * 12 + ["x" * 39])
    assert sorted(len(r.texts) for r in server.requests) == [1, 4, 4, 4]


@given(st.text(max_size=200), st.integers(4, 40))
def test_parts_fit_and_lose_no_letter(text: str, limit: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    parts = list(split(text, limit))
    assert all(len(part.encode()) <= limit for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


@given(st.lists(st.text(max_size=30), max_size=12), st.integers(1, 5), st.integers(4, 60))
def test_batches_hold_all_pieces_in_order(texts: list[str], items: int, size: int) -> None:
    pieces = pieces_of(texts, 20)
    groups = batches(pieces, most_items=items, most_bytes=size)
    assert [piece for group in groups for piece in group] == pieces
    assert all(len(g) <= items and (len(g) == 1 or sum(p.size for p in g) <= size) for g in groups)


def test_an_endless_text_is_cut() -> None:
    pieces = pieces_of(["word " * 100_000], 1_000)
    assert len(pieces) == MOST_PIECES

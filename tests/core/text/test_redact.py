"""The redactor: what is a secret is masked, wherever it stands; what only looks like one stays (K146)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamella.text.redact import MASK, redact

TEXTS = json.loads((Path(__file__).parents[2] / "data" / "cases" / "K146" / "texts.json").read_text("utf-8"))


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case["text"][:30])
def test_secrets_are_masked_and_harmless_texts_stay(case: dict[str, str | None]) -> None:
    text, secret = str(case["text"]), case["secret"]
    if secret is None:
        assert redact(text) == text
    else:
        assert secret not in redact(text)
        assert MASK in redact(text)


# Made up, and put together here so that no scanner takes them for real ones.
KEYS = [
    "sk-" + "abcdefghijklmnopqrstuvwx",
    "sk-proj-" + "Ab12" * 6,
    "sk-ant-api03-" + "Zz9_-" * 8,
    "ghp_" + "A1b2" * 9,
    "github_pat_" + "11ABCDE0" * 4,
    "glpat-" + "x1Y2" * 5,
    "xoxb-" + "123456789012-abcdefABCDEF",
    "xapp-1-" + "A0123456789",
    "gsk_" + "a1B2" * 10,
    "hf_" + "aBcD" * 8,
    "npm_" + "a1B2" * 9,
    "AIza" + "Sy0-_aB" * 5,
    "pplx-" + "0a1b" * 8,
    "AKIA" + "IOSFODNN7EXAMPLE",
    "sk_live_" + "0a1B" * 5,
    "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".c2lnbmF0dXJl",
    "1234567890" + ":AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("place", ["{}", "use {} now", '{{"k": "{}"}}', "密钥{}。", "a={},b", "({})", "\n{}\n", "`{}`"])
def test_a_key_is_found_anywhere(key: str, place: str) -> None:
    secret = key[-12:]
    assert secret not in redact(place.format(key))


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("API_TOKEN=supersecret123456", f"API_TOKEN={MASK}"),
        ("export DB_PASSWORD='with blanks in it'", f"export DB_PASSWORD='{MASK}'"),
        ('{"accessToken": "abcdef123456", "maxTokens": 4000}', f'{{"accessToken": "{MASK}", "maxTokens": 4000}}'),
        ("password: hunter2, then restart", f"password: {MASK}, then restart"),
        ("Passwort: geheim", f"Passwort: {MASK}"),
        ("x-api-key: 0123456789abcdef", f"x-api-key: {MASK}"),
        ("run --token abc --password=xyz now", f"run --token {MASK} --password={MASK} now"),
        ("Authorization: Basic dXNlcjpwYXNz", f"Authorization: Basic {MASK}"),
        ("send Bearer abcdefghijklmnopqrst", f"send Bearer {MASK}"),
        ("https://u:p@ss@host/x", f"https://u:{MASK}@host/x"),
        ("curl -u bob:geheim https://x", f"curl -u bob:{MASK} https://x"),
        ("the password is Hunter2!", f"the password is {MASK}"),
        ("https://x.org/?access_token=abc123def456&n=1", f"https://x.org/?access_token={MASK}&n=1"),
    ],
)
def test_only_the_value_goes(text: str, redacted: str) -> None:
    assert redact(text) == redacted


def test_a_private_key_goes_also_when_its_end_is_missing() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----"
    whole = f"-----BEGIN RSA PRIVATE KEY-----\n{MASK}\n\n-----END RSA PRIVATE KEY-----"
    assert redact(f"see {key} there") == f"see {whole} there"
    assert "abcd" not in redact(key[:50])


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=4096 and token: 4096",
        "monkey: banana1234, keyboard=qwerty12345",
        "The password is stored in the safe.",
        "cache_key=user:42abcd, primary key: id12345678",
        "token=$TOKEN, api_key=${API_KEY}, secret=<your secret>, password: os.environ['PW']",
        "secret_santa: Alice",
        "sk-learn-tutorial, disk-2024-backup",
        "without authorization}); gemini also",
        "the API key is in the vault",
        "http://localhost:8080/a@b and git@github.com:user/repo.git",
        "12:30:45 at 2026-05-10T12:30:45Z",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "路由器密码保存在密码管理器里",
        "Password:\n- written on the wall",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text


words = st.from_regex(r"[a-z]{1,12}", fullmatch=True)
identifiers = st.one_of(
    st.uuids().map(str),
    st.from_regex(r"[0-9a-f]{40}", fullmatch=True),
    st.from_regex(r"[A-Z]{2,5}-[0-9]{1,6}", fullmatch=True),
    st.from_regex(r"[a-z]+(_[a-z]+){1,3}", fullmatch=True),
    st.from_regex(r"[a-z]+/[a-z]+\.py:[0-9]{1,4}", fullmatch=True),
    st.dates().map(str),
    st.integers(0, 10**18).map(str),
)


@settings(deadline=None)
@given(st.lists(st.one_of(words, identifiers), max_size=12).map(" ".join))
def test_words_and_identifiers_stay(text: str) -> None:
    if not re.search("bearer|password|passwd|passphrase|pwd|passwort|kennwort|pin", text):
        assert redact(text) == text


fragments = st.one_of(
    st.just("-----BEGIN PRIVATE KEY-----\nMIIE\n\nabcd\n-----END PRIVATE KEY-----"),
    st.sampled_from(
        [*KEYS, "password: ", "token=", "Bearer ", "https://u:pw@h/", "密码是", '"', "'", "\n", " ", "***"]
    ),
    st.sampled_from([str(case["text"]) for case in TEXTS]),
    st.text(max_size=6),
)


@settings(deadline=None)
@given(st.lists(fragments, max_size=8).map("".join))
def test_twice_is_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@settings(deadline=None)
@given(st.sampled_from(KEYS), st.text(max_size=20), st.text(max_size=20))
def test_no_surrounding_text_hides_a_key(key: str, before: str, after: str) -> None:
    assert key[-10:] not in redact(f"{before} {key} {after}")


@settings(deadline=None)
@given(st.lists(fragments, max_size=8).map("".join))
def test_lines_stay_where_they_are(text: str) -> None:
    assert redact(text).count("\n") == text.count("\n")

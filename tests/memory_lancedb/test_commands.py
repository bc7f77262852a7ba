"""The command line with memory-lancedb in the slot: the same commands as for any memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from inside import lamella
from memories import GivenVectors, memories_in

from lamella.config.secrets import HIDDEN, shown
from lamella_memory_lancedb.config import Config
from lamella_memory_lancedb.service import Memories
from lamella_memory_lancedb.store.location import Location
from lamella_memory_lancedb.store.memory import Origin
from lamella_memory_lancedb.store.store import Store


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    lamella("config", "set", "plugins.slots.memory", "memory-lancedb", home=tmp_path, check=True)
    return tmp_path


def test_memory_commands(home: Path) -> None:
    ws = ("--workspace", home / "ws")
    added = lamella("memory", "add", "The staging server is called bluebird.", "--json", *ws, home=home).json
    assert added["path"].startswith("memories/")
    found = lamella("memory", "search", "name of the staging server", "--json", *ws, home=home).json
    assert [(r["path"], r["snippet"]) for r in found["results"]] == [
        (added["path"], "The staging server is called bluebird.")
    ]
    assert (found["backend"], found["mode"], found["degraded"]) == ("lancedb", "hybrid", None)
    got = lamella("memory", "get", added["path"], *ws, home=home)
    assert got.out == "The staging server is called bluebird.\n"
    assert lamella("memory", "get", "memories/00000000-0000-0000-0000-000000000000", *ws, home=home).code == 4
    status = lamella("memory", "status", "--json", *ws, home=home).json
    assert (status["memories"], status["dimensions"], status["problem"]) == (1, 512, None)


def test_the_offline_model_keeps_and_recalls(home: Path) -> None:
    ask = ("ask", "--model", "offline", "--workspace", home / "ws")
    lamella(*ask, "Remember that the attic key hangs behind the door", home=home, check=True)
    answered = lamella(*ask, "--new", "Where does the attic key hang?", home=home, check=True)
    assert "> the attic key hangs behind the door" in answered.out.lower()


def test_plugins_list_shows_both_memories_and_no_secret(home: Path) -> None:
    key = "plugins.config.memory-lancedb.storage_options.aws_secret_access_key"
    lamella("config", "set", key, "hushhush", home=home, check=True)
    listed = lamella("plugins", "list", home=home)
    assert "hushhush" not in listed.out + lamella("config", "show", home=home).out
    rows = {line.split()[0]: line for line in listed.out.splitlines() if line.startswith(("memory-", "plugins.config"))}
    assert " off " in rows["memory-core"] and " on " in rows["memory-lancedb"]
    assert rows["plugins.config.memory-lancedb.auto_recall"].endswith("true")
    assert rows["plugins.config.memory-lancedb.auto_capture"].endswith("false")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("plugins.config.x.api_key", "abc", HIDDEN),
        ("plugins.config.x.api_key_env", "NAME", "NAME"),
        ("plugins.config.x.token", "abc", HIDDEN),
        ("x.max_tokens", 5, 5),
        ("x.options", {"secret_access_key": "abc", "region": "eu"}, {"secret_access_key": HIDDEN, "region": "eu"}),
        ("x.storage_options.account_key", "${KEY}", "${KEY}"),
        ("x.token", "", ""),
    ],
)
def test_secrets_are_hidden_where_settings_are_shown(key: str, value: object, expected: object) -> None:
    assert shown(key, value) == expected


# --- an object store, played by a folder without a lock ------------------------------------------------------


def without_lock(folder: Path) -> Memories:
    memories = memories_in(folder, GivenVectors())
    place = Location(str(folder / "bucket"), None, "s3://bucket")
    memories.store = Store(place, Config(), "main")
    memories.finder._store = memories.store
    return memories


def test_what_two_programs_store_at_once_in_an_object_store_is_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = without_lock(tmp_path), without_lock(tmp_path)
    one.keeper.keep("Something else", Origin("main", "one"))
    # Neither sees the other's text when it looks, as when both write in the same moment.
    monkeypatch.setattr("lamella_memory_lancedb.keeping.Keeper._said_before", lambda *_arguments: None)
    first = one.keeper.keep("The gate closes at eight", Origin("main", "one"))
    second = other.keeper.keep("The gate closes at eight", Origin("main", "two"))
    texts = [m.text for m in one.page()]
    assert sorted(texts) == ["Something else", "The gate closes at eight"]
    kept = next(m for m in other.page() if m.text.startswith("The gate"))
    assert second.memory == kept and kept.id == min(m.id for m in (first.memory, kept) if m is not None)


def test_what_is_forgotten_in_an_object_store_is_gone_from_the_table(tmp_path: Path) -> None:
    memories = without_lock(tmp_path)
    for text in ("I prefer tea", "The gate closes at eight"):
        memories.keeper.keep(text, Origin("main", "one"))
    memories.forget([memories.find("gate closes", 1).hits[0].memory])
    assert [m.text for m in memories.page()] == ["I prefer tea"]
    assert memories.keeper.keep("The gate closes at eight", Origin("main", "x"), wanted=False).action == "forgotten"

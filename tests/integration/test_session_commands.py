"""`lamella sessions`: what is put aside, restored, removed, renamed, searched and exported at the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from builders import assistant, call, result, transcript, user, write_lines
from cli import Ran
from inside import lamella as run

from lamella.sessions.store import SessionStore
from lamella.sessions.transcript import SessionFile
from lamella.text.days import unix_ms
from lamella.types.messages import ImageBlock, UserMessage

DAY = 86_400_000


class Agent:
    """The agent `main` of a scratch state folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "agents/main/sessions"
        self.folder.mkdir(parents=True)
        (home / "workspace").mkdir()
        self.store = SessionStore(self.folder)

    def add(self, name: str, *texts: str, age_days: float = 0) -> Path:
        path = write_lines(self.folder / f"{name}.jsonl", transcript(texts or [f"hello from {name}"]))
        entry = {"sessionId": name, "updatedAt": int(unix_ms() - age_days * DAY)}
        self.store.index.update(f"agent:main:{name}", lambda _none: entry)
        return path

    def files(self) -> dict[str, bytes]:
        return {f.name: f.read_bytes() for f in self.folder.iterdir() if f.is_file()}

    def __call__(self, *arguments: str, check: bool = True) -> Ran:
        return run("sessions", *arguments, home=self.home, check=check)


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path / "state")


def test_prune_shows_and_then_does_what_it_showed(agent: Agent) -> None:
    for name, age in (("main", 90.0), ("old", 45.0), ("new", 1.0)):
        agent.add(name, age_days=age)
    before = agent.files()
    shown = agent("prune")
    assert "agent:main:old" in shown.out
    assert "not used for 45 days" in shown.out
    assert "--yes does it" in shown.out
    assert agent.files() == before
    planned, done = agent("prune", "--json").json, agent("prune", "--yes", "--json").json
    assert (planned["done"], done["done"]) == (False, True)
    assert [s["key"] for s in planned["steps"]] == [s["key"] for s in done["steps"]] == ["agent:main:old"]
    assert agent.files()[done["steps"][0]["archive"]] == before["old.jsonl"]
    assert agent("prune").out == "Nothing to do.\n"


def test_prune_takes_limits_as_options(agent: Agent) -> None:
    for name, age in (("a", 5.0), ("b", 4.0), ("c", 3.0)):
        agent.add(name, "x" * 1000, age_days=age)

    def keys(*options: str) -> set[str]:
        return {s["key"] for s in agent("prune", "--json", *options).json["steps"]}

    assert keys() == set()
    assert keys("--older-than", "4d12h") == {"agent:main:a"}
    assert keys("--keep", "1") == {"agent:main:a", "agent:main:b"}
    assert keys("--keep", "1", "--protect", "agent:main:a") == {"agent:main:b", "agent:main:c"}
    assert keys("--max-bytes", "2.5kb") >= {"agent:main:a"}
    assert "agent:main:c" not in keys("--max-bytes", "4kb")
    for wrong in (("--older-than", "soon"), ("--max-bytes", "1 mb"), ("--keep", "-1"), ("--protect", "x")):
        assert agent("prune", *wrong, check=False).code == 2


def test_status_tells_what_is_due(agent: Agent) -> None:
    agent.add("new")
    assert "Due" not in run("status", home=agent.home, check=True).out
    agent.add("old", age_days=45)
    before = agent.files()
    told = run("status", home=agent.home, check=True).out
    assert "Due for maintenance: 1 sessions and 0 files" in told
    assert agent.files() == before


def test_archive_restore_and_rm(agent: Agent) -> None:
    path = agent.add("a")
    agent("rename", "agent:main:a", "My talk")
    data = path.read_bytes()
    assert "--yes" in agent("archive", "agent:main:a").out
    assert (agent.folder / "a.jsonl").exists()
    agent("archive", "agent:main:a", "--yes")
    (listed,) = agent("list", "--archived", "--json").json
    assert (listed["key"], listed["kind"], listed["bytes"]) == ("agent:main:a", "deleted", len(data))
    assert listed["file"] in agent("list", "--archived").out
    assert "hello from a" in agent("show", listed["file"]).out

    assert "Nothing was changed" in agent("restore", "agent:main:a").out
    restored = agent("restore", "agent:main:a", "--yes", "--json").json
    assert (restored["done"], restored["file"], restored["replaced"]) == (True, "a.jsonl", None)
    assert (agent.folder / "a.jsonl").read_bytes() == data
    (row,) = agent("list", "--json").json
    assert (row["key"], row["label"]) == ("agent:main:a", "My talk")

    agent("archive", "agent:main:a", "--yes")
    (listed,) = agent("list", "--archived", "--json").json
    assert "--yes" in agent("rm", listed["file"]).out
    agent("rm", listed["file"], "--yes")
    assert agent("list", "--archived").out.startswith("No archives")
    agent.add("b")
    agent("rm", "agent:main:b", "--yes")
    assert agent.files().keys() == {"sessions.json", "sessions.json.bak"}
    for unknown in (("rm", "agent:main:b"), ("rm", "b.jsonl"), ("archive", "agent:main:b"), ("restore", "b")):
        assert agent(*unknown, check=False).code == 4


def test_what_runs_is_not_put_aside(agent: Agent) -> None:
    agent.add("a", age_days=90)
    with agent.store.lock(agent.store.rows()[0]):
        for command in (("archive", "agent:main:a"), ("rm", "agent:main:a")):
            ran = agent(*command, "--yes", check=False)
            assert (ran.code, "is locked by process" in ran.out) == (1, True)
        assert agent("prune", "--yes").out == "Nothing to do.\n"
    assert agent.store.rows()[0].exists


def test_reset_begins_a_session_and_keeps_the_old_one(agent: Agent) -> None:
    data = agent.add("a").read_bytes()
    assert "--yes" in agent("reset", "agent:main:a").out
    done = agent("reset", "agent:main:a", "--yes", "--json").json
    assert done["previousSessionId"] == "a"
    assert agent("list", "--json").json[0]["sessionId"] == done["sessionId"] != "a"
    assert data in agent.files().values()
    assert agent("reset", "agent:main:none", "--yes", check=False).code == 4


def test_compact_folds_and_show_follows(agent: Agent, tmp_path: Path) -> None:
    path = agent.add("a", *(f"{n} " + "many words " * 3000 for n in range(12)))
    before = path.read_bytes()
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "THE SUMMARY"}] * 3))
    done = agent(
        "compact",
        "agent:main:a",
        "the boiler",
        "--model",
        f"scripted/{script}",
        "--no-plugin",
        "compaction-safeguard",
        "--json",
    ).json
    assert done["error"] is None
    assert done["tokensAfter"] < done["tokensBefore"]
    assert path.read_bytes().startswith(before)
    shown = agent("show", "agent:main:a").out
    assert "THE SUMMARY" in shown
    assert "you> 0 many words" not in shown
    assert "you> 0 many words" in agent("show", "agent:main:a", "--all").out
    assert re.search(r"compaction of \d+ tokens, kept from m\d+: THE SUMMARY", agent("tree", "agent:main:a").out)
    raw = [json.loads(line) for line in agent("show", "agent:main:a", "--raw").out.splitlines()]
    assert [r["type"] for r in raw][:13] == ["message"] * 12 + ["compaction"]
    assert agent("compact", "agent:main:a", "--model", f"scripted/{script}", check=False).code == 1


def test_show_leaves_silent_turns_out_and_raw_does_not(agent: Agent) -> None:
    path = agent.add("a", "hello")
    file = SessionFile.open(path)
    for message in (
        assistant("hi"),
        user("Pre-compaction memory flush. Store what matters."),
        assistant("", call("c1", "write")),
        result("c1", "written"),
        assistant("NO_REPLY"),
        user("and now?"),
        assistant("", call("c2", "read")),
        result("c2", "NO_REPLY"),
        assistant("well"),
    ):
        file.append_message(message)
    file.close()
    for command in (
        ("show", "agent:main:a"),
        ("export", "agent:main:a"),
        ("export", "agent:main:a", "--format", "html"),
    ):
        text = agent(*command).out
        assert "Pre-compaction" not in text
        assert "written" not in text
        assert all(part in text for part in ("hello", "hi", "and now?", "read", "well"))
    assert "Pre-compaction" in agent("show", "agent:main:a", "--raw").out


def test_search_finds_words_in_use_and_put_aside(agent: Agent) -> None:
    agent.add("live", "The boiler is blue", "nothing here", "锅炉每年五月检修一次")
    agent.add("gone", "Boiler: BLUE, ﬁne and old")
    agent("archive", "agent:main:gone", "--yes")
    found = agent("search", "blue BOILER", "--json").json
    assert {(f["key"], f["archived"]) for f in found} == {("agent:main:live", False), (None, True)}
    assert [f["text"] for f in agent("search", "检修", "--json").json] == ["锅炉每年五月检修一次"]
    assert "ﬁne" in agent("search", "FINE").out
    assert agent("search", "boiler red").out == "Nothing found.\n"
    assert len(agent("search", "boiler", "-n", "1", "--json").json) == 1
    assert agent("search", "  ", check=False).code == 2


def test_search_names_what_it_cannot_read_and_goes_on(agent: Agent) -> None:
    agent.add("a", "the word")
    (agent.folder / "junk.jsonl").write_bytes(b"\x00\xffno transcript\n")
    ran = agent("search", "word")
    assert "the word" in ran.out
    assert "junk.jsonl" in ran.err


def test_html_is_one_page_and_what_was_said_is_no_markup(agent: Agent) -> None:
    path = agent.add("a", '<script>alert(1)</script> & "quotes"\x1b[2J')
    file = SessionFile.open(path)
    file.append_message(UserMessage((ImageBlock("aGk=", "image/png"), ImageBlock('x" onerror="', "image/svg+xml")), 1))
    file.append_message(assistant("<b>bold</b>", call("c1", '<i>"', arg="</pre><script>")))
    file.append_message(result("c1", "</details><img src=x>", '"><script>', is_error=True))
    file.set_name("</title><script>")
    file.close()
    page = agent("export", "agent:main:a", "--format", "html").out
    body = page[page.index("<body>") :]
    assert "<script" not in page
    assert "<b>" not in body
    assert "\x1b" not in page
    assert body.count("<img") == 1
    assert '<img alt="" src="data:image/png;base64,aGk=">' in body
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("</title>") == page.count("</details>") - 1 == 1


def test_jsonl_exported_is_opened_again(agent: Agent, tmp_path: Path) -> None:
    agent.add("a", "one", "two")
    agent("export", "agent:main:a", "--format", "jsonl", "-o", str(tmp_path / "out.jsonl"))
    assert "two" in agent("show", str(tmp_path / "out.jsonl")).out


def test_a_name_is_in_the_list_and_in_the_transcript(agent: Agent) -> None:
    path = agent.add("a")
    agent("rename", "agent:main:a", "  Holiday\nplans ")
    assert "Holiday plans" in agent("list").out
    assert SessionFile.open(path).name == "Holiday plans"
    agent("rename", "agent:main:a", "")
    assert agent("list", "--json").json[0]["label"] == ""
    assert SessionFile.open(path).name is None

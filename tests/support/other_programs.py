"""State folders of OpenClaw, Pi and Claude Code, as those programs leave them."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from builders import transcript, write_lines

PI_SESSIONS = Path(__file__).parents[1] / "data" / "pi" / "sessions_written_by_pi"

OPENCLAW_2026_3 = """\
// my agents
{
  agents: {
    defaults: {
      model: { primary: "anthropic/claude-sonnet-5-5", fallbacks: ["openai/gpt-6.1-terra"] },
      userTimezone: "Europe/Berlin",
      contextTokens: 120000,
      compaction: { reserveTokens: 12000, mode: "safeguard", memoryFlush: { softThresholdTokens: 3000 } },
      contextPruning: { mode: "cache-ttl", ttl: "5m", softTrim: { maxChars: 5000 }, },
      memorySearch: {
        provider: "openai",
        remote: { apiKey: "sk-not-to-be-copied" },
        query: {
          maxResults: 8,
          hybrid: { mmr: { enabled: true }, temporalDecay: { enabled: false, halfLifeDays: 9 } },
        },
      },
    },
    list: [
      { id: "main", default: true, name: "Ada" },
      { id: "Work Bot", model: "mystery/model-1" },
    ],
  },
  channels: { telegram: { botToken: "123:abc", historyLimit: 20, dms: { "user.1": { historyLimit: 5 } } } },
  models: {
    providers: {
      local: {
        baseUrl: "http://localhost:8080/v1", apiKey: "${LOCAL_KEY}", api: "openai-completions",
        models: [{ id: "qwen", contextWindow: 32768, maxTokens: 4096 }],
      },
    },
  },
  gateway: { port: 18789 },
  /* trailing commas are fine */
}
"""
OPENCLAW_2026_9 = """\
{
  "agents": {
    "defaults": { "contextTokens": 90000 },
    "entries": { "helper": { "name": "Helper", "model": "openai/gpt-6.1-terra" } },
  },
  "memory": { "backend": "builtin", "search": { "provider": "none", "query": { "maxResults": 4 } } },
}
"""


def openclaw(home: Path, config: str = OPENCLAW_2026_3) -> Path:
    """A folder of OpenClaw 2026.3: two agents, a workspace with notes in Chinese, sessions, archives."""
    folder = home / "openclaw"
    write(folder / "openclaw.json", config)
    write(folder / "workspace" / "AGENTS.md", "# Rules\n")
    write(folder / "workspace" / "MEMORY.md", "# 记忆\n锅炉在五月检修。\n")
    write(folder / "workspace" / "memory" / "2026-05-10.md", "- tea at four\n")
    write(folder / "workspace" / "node_modules" / "x.js", "//\n")
    sessions = folder / "agents" / "main" / "sessions"
    session(sessions, "one", ["hello", "你好，锅炉什么时候检修？"])
    session(sessions, "two", ["in the group"])
    shutil.copy(sessions / "one.jsonl", sessions / "old.jsonl.reset.2026-03-16T09-30-00.000Z")
    entries = {
        "agent:main:main": {"sessionFile": str(sessions / "one.jsonl"), "compactionCount": 2, **entry("one", 1_000)},
        "agent:main:telegram:group:-100": {"chatType": "group", **entry("two", 2_000)},
    }
    write(sessions / "sessions.json", json.dumps(entries, indent=2))
    session(folder / "agents" / "Work Bot" / "sessions", "three", ["at work"])
    write(folder / "agents" / "Work Bot" / "sessions" / "sessions.json", json.dumps({"main": entry("three", 3_000)}))
    return folder


def entry(session_id: str, updated_at: int) -> dict[str, Any]:
    return {"sessionId": session_id, "updatedAt": updated_at}


def session(folder: Path, session_id: str, texts: list[str]) -> Path:
    """A transcript of user messages."""
    rows = transcript(texts)
    rows[0]["id"] = session_id
    folder.mkdir(parents=True, exist_ok=True)
    return write_lines(folder / f"{session_id}.jsonl", rows)


def say(file: Path, text: str, parent: str = "m0") -> None:
    """Let the other program append a message."""
    row = {**transcript([text])[1], "id": hashlib.sha256(text.encode()).hexdigest()[:8], "parentId": parent}
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(row) + "\n")


def pi(home: Path) -> Path:
    """A folder of Pi with two projects, the sessions written by the real Pi."""
    folder = home / "pi"
    write(folder / "settings.json", '{"defaultProvider": "google", "defaultModel": "gemini-3", "theme": "dark"}')
    for number, file in enumerate(sorted(PI_SESSIONS.glob("*.jsonl"))[:6]):
        place = folder / "sessions" / f"--home-me-project{number % 2}--"
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place / file.name)
    return folder


class Claude:
    """Lines of a transcript of Claude Code, in its own shape."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def add(self, kind: str, parent: str | None, **fields: Any) -> str:
        uuid = f"00000000-0000-4000-8000-{len(self.lines):012d}"
        when = f"2026-05-10T08:00:{len(self.lines):02d}.000Z"
        common = {"parentUuid": parent, "isSidechain": False, "cwd": "/srv/project", "sessionId": "s"}
        self.lines.append({**common, "type": kind, "uuid": uuid, "timestamp": when, **fields})
        return uuid

    def user(self, text: str, parent: str | None, **fields: Any) -> str:
        return self.add("user", parent, message={"role": "user", "content": text}, **fields)

    def assistant(self, parent: str, *blocks: Mapping[str, Any], message_id: str = "msg_1", **fields: Any) -> str:
        usage = {"input_tokens": 3, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 5, "output_tokens": 7}
        message = {"id": message_id, "role": "assistant", "model": "claude-opus-5", "content": blocks, "usage": usage}
        return self.add("assistant", parent, message=message, **fields)

    def result(self, parent: str, call_id: str, content: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        return self.add("user", parent, message={"role": "user", "content": [block]})

    def write(self, file: Path, lines: Iterable[Mapping[str, Any]] | None = None) -> Path:
        file.parent.mkdir(parents=True, exist_ok=True)
        return write_lines(file, self.lines if lines is None else lines)


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def tool_use(call_id: str, name: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"command": "ls"}}


def claude(home: Path) -> Path:
    """A folder of Claude Code: one project, a session with parallel calls, a title and a snapshot."""
    folder = home / "claude"
    c = Claude()
    c.lines.append({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}})
    asked = c.user("列出文件", None)
    thought = c.assistant(asked, {"type": "thinking", "thinking": "two calls", "signature": "sig"})
    first = c.assistant(thought, tool_use("t1"))
    second = c.assistant(first, tool_use("t2", "Read"))
    c.result(first, "t1", "a.txt")
    got = c.result(second, "t2", [{"type": "text", "text": "content"}])
    c.assistant(got, text("There is a.txt."), message_id="msg_2")
    c.lines.append({"type": "summary", "summary": "Listing files", "leafUuid": got})
    c.write(folder / "projects" / "-home-me-project" / "11111111-1111-4111-8111-111111111111.jsonl")
    return folder


def write(file: Path, content: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")
    return file


def snapshot(folder: Path) -> dict[str, tuple[str, int]]:
    """Every file of a folder with a digest and the time of its last change."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[path.relative_to(folder).as_posix()] = (digest, path.stat().st_mtime_ns)
    return found

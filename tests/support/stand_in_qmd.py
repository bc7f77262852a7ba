"""A program that behaves as `qmd` seems to from outside, without Node: what it prints, how it fails.

A program `qmd` in a folder of its own runs it (see `qmd_programs`); files there steer it: `version` (2.8.3 unless
given), `mode` (how it fails, see `before` and `print_results`) and `mode.SUB` (the same for one subcommand). `calls`
there tells each start, one Python literal a line.

Its index is a JSON file at the place of QMD's database: the texts of the collections of `index.yml`.
"""

# Tests start it many hundred times, and imports are most of what that takes: so they are made where they are needed,
# and `pathlib` is not among those of each start.
# ruff: noqa: PTH103, PTH105, PTH109, PTH110, PTH118, PTH120
import os
import sys

HERE = os.path.dirname(sys.argv[0])
DATABASE_ERROR = "SqliteError: {}\n    at Database.exec (db.js:9:14) {{\n  code: '{}'\n}}\n\nNode.js v24.22.3\n"
_WITH_VALUE = {"-n", "-c", "--index", "--name", "--mask"}


def steered(name: str) -> str | None:
    """What a file beside the program says."""
    try:
        with open(os.path.join(HERE, name)) as file:
            return file.read().strip()
    except FileNotFoundError:
        return None


def happened(name: str) -> bool:
    """Whether this was asked before; from now on it was."""
    before = steered(name) is not None
    with open(os.path.join(HERE, name), "w"):
        return before


def version() -> tuple[int, ...]:
    return tuple(map(int, (steered("version") or "2.8.3").split(".")))


def mode(sub: str) -> str:
    return steered(f"mode.{sub}") or steered("mode") or "ok"


def wait_for_ever() -> None:
    import time

    time.sleep(3600)


def fail(text: str, code: int = 1) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
    sys.exit(code)


def say(text: str | bytes) -> None:
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)
    sys.stdout.flush()


# --- settings and index ------------------------------------------------------------------------------------


def settings() -> dict:
    import json

    path = os.path.join(os.environ["QMD_CONFIG_DIR"], "index.yml")
    if not os.path.exists(path):
        return {}
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file).get("collections", {})
    except ValueError:
        fail(f"Error: Failed to parse {path}: YAMLParseError: Unexpected token\n")
        raise


def database() -> str:
    return os.path.join(os.environ["XDG_CACHE_HOME"], "qmd", "index.sqlite")


def load() -> dict:
    import json

    settings()  # whatever it does, qmd reads them first
    path = database()
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write("{}")
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except ValueError:
        fail(DATABASE_ERROR.format("file is not a database", "SQLITE_NOTADB"))
        raise


def is_indexed(parts: tuple[str, ...]) -> bool:
    return not any(part.startswith(".") or part in ("node_modules", "vendor", "dist", "build") for part in parts)


def update() -> None:
    import json
    from pathlib import Path

    def matching(base: Path, pattern: str) -> set[Path]:
        """Files that match a pattern, or one of several in braces."""
        patterns = pattern[1:-1].split(",") if pattern.startswith("{") else [pattern]
        return {path for one in patterns for path in base.glob(one)}

    old, new, lines = load(), {}, []
    for name, collection in settings().items():
        base, texts = Path(collection["path"]), {}
        for path in sorted(matching(base, collection["pattern"])) if base.is_dir() else ():
            relative = path.relative_to(base)
            if path.is_file() and not path.is_symlink() and is_indexed(relative.parts):
                text = path.read_text("utf-8", "replace")
                if text.strip():
                    texts[relative.as_posix()] = text
        known = old.get(name, {"texts": {}})["texts"]
        added = len(texts.keys() - known.keys())
        changed = sum(known.get(key, text) != text for key, text in texts.items())
        same, gone = len(texts) - added - changed, len(known.keys() - texts.keys())
        lines.append(f"{name}\nIndexed: {added} new, {changed} updated, {same} unchanged, {gone} removed\n")
        new[name] = {"path": str(base), "texts": texts}
    temporary = f"{database()}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(new, file)
    os.replace(temporary, database())
    say(f"Updating {len(new)} collection(s)...\n\n" + "\n".join(lines) + "\n\u2713 All collections updated.\n")


# --- searching ---------------------------------------------------------------------------------------------


def shown(path: str) -> str:
    import re

    if version() >= (2, 8):
        return path
    slugged = re.sub(r"[^\w/]|_", "-", path.removesuffix(".md")) + ".md"
    return slugged if version() >= (2, 5) else slugged.lower()


def folded(text: str) -> str:
    """Without case and accents."""
    import unicodedata

    return "".join(c for c in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(c))


def matches(words: list[str], text: str) -> int:
    low, words = folded(text), list(map(folded, words))
    return sum(low.count(word) for word in words) if words and all(word in low for word in words) else 0


def ranked(line: str, collections: list[str]) -> list[dict]:
    import re

    words = re.findall(r'"[^"]+"|\S+', line.lower())
    words = [word.strip('"') for word in words]
    found = []
    for name, collection in load().items():
        if name not in collections:
            continue
        for path, text in collection["texts"].items():
            count = matches(words, text)
            if count:
                found.append((count, item(name, path, text, words)))
    found.sort(key=lambda pair: -pair[0])
    return [one for _, one in found]


def item(name: str, path: str, text: str, words: list[str]) -> dict:
    lines = text.split("\n")
    best = max(range(len(lines)), key=lambda i: sum(word in lines[i].lower() for word in words))
    first, last = max(0, best - 1), min(len(lines), best + 3)
    header = f"@@ -{first + 1},{last - first} @@ ({first} before, {len(lines) - last} after)"
    return {
        "docid": f"#{len(text):06x}",
        "score": 0.5,
        "file": f"qmd://{name}/{shown(path)}",
        "line": best + 1,
        "title": lines[0].lstrip("# "),
        "snippet": header + "\n" + "\n".join(lines[first:last])[:300],
    }


def fused(lines: list[str], collections: list[str], limit: int) -> list[dict]:
    scores: dict[str, float] = {}
    items: dict[str, dict] = {}
    for line in lines:
        for rank, one in enumerate(ranked(line, collections)):
            scores[one["file"]] = scores.get(one["file"], 0) + 1 / (60 + rank)
            items.setdefault(one["file"], one)
    order = sorted(scores, key=lambda file: -scores[file])[:limit]
    return [dict(items[file], score=round(1 / rank, 2)) for rank, file in enumerate(order, 1)]


def search(sub: str, text: str, options: dict) -> list[dict]:
    known = load()
    for name in options["-c"]:
        if name not in known and name not in settings():
            fail(f"Collection not found: {name}\n")
    if not text.strip():
        fail(f"Usage: qmd {sub} [options] <query>\n")
    collections, limit = options["-c"] or list(known), int(options.get("-n") or 20)
    if sub == "search":
        return ranked(text, collections)[:limit]
    lines = text.split("\n")
    if "--no-rerank" not in options or not all(line.startswith("lex: ") for line in lines):
        wait_for_ever()  # for a model
    return fused([line.removeprefix("lex: ") for line in lines], collections, limit)


# --- the server ----------------------------------------------------------------------------------------------


def serve() -> None:
    import json

    query = {"name": "search" if mode("mcp") == "old_tools" else "query", "inputSchema": {"searches": []}}
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        method, parameters = message["method"], message.get("params", {})
        result: dict = {}
        if method == "tools/list":
            result = {"tools": [query, {"name": "status"}]}
        elif method == "tools/call":
            result = call(parameters["name"], parameters["arguments"])
        say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")


def call(name: str, arguments: dict) -> dict:
    import json
    import signal

    how = mode("mcp")
    if name == "status":
        rows = [
            {"name": key, "path": "/elsewhere" if how == "another_index" else one["path"]}
            for key, one in load().items()
            if one["texts"]
        ]
        return {"structuredContent": {"collections": rows}}
    with open(os.path.join(HERE, "queries.jsonl"), "a") as file:
        file.write(json.dumps(arguments) + "\n")
    if how == "killed":
        os.killpg(0, signal.SIGKILL)
    if how == "hang_query":
        wait_for_ever()
    if how == "error":
        return {"isError": True, "content": [{"type": "text", "text": "SqliteError: no such table: documents"}]}
    if how == "corrupt":
        return {"isError": True, "content": [{"type": "text", "text": "database disk image is malformed"}]}
    if how == "noise":
        say("[node-llama-cpp] The prebuilt binary [cpu] needs [1, 2]\n[]\n\n")
    if how == "no_results":
        return {"structuredContent": {"results": None}}
    lines = [one["query"] for one in arguments["searches"] if one["type"] == "lex"]
    items = fused(lines, arguments["collections"], arguments["limit"])
    for one in items:
        one["file"] = one["file"].removeprefix("qmd://")
        numbered = enumerate(one["snippet"].split("\n"), one["line"])
        one["snippet"] = "\n".join(f"{number}: {text}" for number, text in numbered)
    return {"structuredContent": {"results": items}}


# --- failures ------------------------------------------------------------------------------------------------


def before(how: str) -> None:
    """Failures in place of an answer."""
    import signal

    if how == "exit1":
        fail("boom\n")
    if how == "stack":
        fail(DATABASE_ERROR.format("no such table: documents", "SQLITE_ERROR"))
    if how == "exit127":
        fail("/usr/bin/env: 'node': No such file or directory\n", 127)
    if how == "sigsegv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "hang_ignore_term":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if how in ("hang", "hang_ignore_term"):
        wait_for_ever()
    if how == "worker":  # as the real launcher: a second process, which holds the pipes too
        start_worker()
        wait_for_ever()
    if how == "busy":
        fail(DATABASE_ERROR.format("database is locked", "SQLITE_BUSY"))
    if how == "busy_once" and not happened("was_busy"):
        fail(DATABASE_ERROR.format("database is locked", "SQLITE_BUSY"))
    if how == "full":
        fail("Error: ENOSPC: no space left on device, write\n")
    if how == "vanished" or (how == "vanished_once" and not happened("has_vanished")):
        fail("Collection not found: memory\n")
    if how == "silent":
        sys.exit(0)
    if how == "nothing_stdout":
        say("No results found above minimum score threshold.\n")
        sys.exit(0)
    if how == "nothing_stderr":
        fail("No results found.\n", 0)


def start_worker(**options: bool) -> None:
    """A second process, which holds the pipes too."""
    import subprocess

    worker = subprocess.Popen([sys.executable, "-ES", "-c", "import time; time.sleep(3600)"], **options)
    with open(os.path.join(HERE, "worker.pid"), "w") as file:
        file.write(str(worker.pid))


OUTSIDE = ("../../etc/passwd", "/etc/passwd", "memory%2F2026-03-02.md", "", "gone.md", ".", "memory/../MEMORY.md")
NO_RESULTS = [1, "x", None, [], {}, {"file": None}, {"file": 7}, {"docid": None}, {"file": "no-collection.md"}]


def distorted(items: list, how: str) -> list:
    if how == "zero_scores":
        return [dict(one, score=0) for one in items]
    if how == "duplicate":
        return items + items
    if how == "odd_snippets":
        return [dict(one, snippet="@@ -99999999999,0 @@\n@@ -1,1 @@", line="three") for one in items]
    if how == "bad_items":
        return [*NO_RESULTS, *(dict(one, score="0.9", snippet=7, line=None) for one in items)]
    if how == "outside":
        bad = [{"file": f"qmd://memory/{path}", "score": 1} for path in OUTSIDE]
        return [*bad, {"file": "qmd://unmanaged/a.md"}, {"file": "/etc/passwd"}, {"file": "qmd://memory"}, *items]
    if how == "huge":
        return [{"file": f"qmd://memory/{i}.md", "snippet": "x" * 1000} for i in range(20_000)]
    return items


def print_results(items: list, how: str) -> None:
    import json

    body = json.dumps(distorted(items, how), ensure_ascii=False, indent=2) + "\n"
    if how == "object":
        body = json.dumps({"results": items})
    if how == "nan":
        body = body.replace('"score": ', '"score": NaN, "was": ')
    if how == "truncated":
        body = body[: len(body) // 2]
    if how == "bom":
        body = "\ufeff" + body
    if how == "noise_before":
        body = "[node-llama-cpp] The prebuilt binary [cpu] needs [1, 2] []\nQMD Warning: no GPU\n" + body
    if how == "noise_ansi":
        spinner = "".join(f"\x1b[2K\x1b[1A\x1b[2K\x1b[G{sign} Gathering information\n" for sign in "\u280b\u2819")
        body = "\x1b[?25l" + spinner + "\x1b[?25h" + body
    if how == "noise_after":
        body += "Done in [12] ms\n"
    if how == "loud":
        sys.stderr.write("QMD Warning: no GPU acceleration\n" * 100_000)
    data = body.encode("utf-8", "surrogateescape")
    if how == "bad_utf8":
        data = data.replace(b'"title": "', b'"title": "\xff\xfe')
    if how == "split":
        for byte in data:
            os.write(1, bytes([byte]))
        return
    say(data)
    if how == "abort_after":
        sys.stderr.write("ggml_abort: residual sets not empty\n")
        sys.stderr.flush()
        os.abort()
    if how == "exit134_after":
        sys.exit(134)
    if how == "hang_after":
        wait_for_ever()
    if how == "worker_after":  # the program ends, a process of another session keeps the pipes open
        start_worker(start_new_session=True)


def parse(arguments: list[str]) -> tuple[list[str], dict]:
    options: dict = {"-c": []}
    words: list[str] = []
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word == "--":
            return words + arguments[position + 1 :], options
        if word in _WITH_VALUE:
            position += 1
            value = arguments[position]
            if word == "-c":
                options["-c"].append(value)
            else:
                options[word] = value
        elif word.startswith("-"):
            options[word] = True
        else:
            words.append(word)
        position += 1
    return words, options


def main() -> None:
    names = ("HOME", "CI", "INDEX_PATH", "NO_COLOR", "PATH")
    environment = {k: v for k, v in os.environ.items() if k.startswith(("XDG_", "QMD_")) or k in names}
    call_line = {"argv": sys.argv[1:], "cwd": os.getcwd(), "env": environment, "pid": os.getpid()}
    with open(os.path.join(HERE, "calls"), "a") as file:
        file.write(f"{call_line!a}\n")
    words, options = parse(sys.argv[1:])
    if "--version" in options:
        return say(f"qmd {'.'.join(map(str, version()))}\n")
    sub = words[0] if words else ""
    how = mode(sub)
    if sub == "mcp":
        before(how)
        return fail(f"Unknown command: {sub}\n") if how == "missing" else serve()
    before(how)
    if sub == "update":
        if how == "slow":
            import time

            happened("updating")
            while steered("mode.update"):
                time.sleep(0.02)
        return update()
    if sub == "embed":
        if how == "locked":
            return say("Another embed process is already running. Skipping.\n")
        return say("\u2713 Done! Embedded 3 chunks from 2 documents in 0.4s\n")
    if sub == "status":
        total = sum(len(one["texts"]) for one in load().values())
        return say(f"QMD Status\n\nDocuments\n  Total:    {total} files indexed\n  Pending:  {total} need embedding\n")
    if sub == "collection" and words[1:2] == ["show"]:
        one = settings().get(words[2])
        if one is None:
            return fail(f"Collection not found: {words[2]}\n")
        return say(
            f"Collection: {words[2]}\n  Path:     {one['path']}\n  Pattern:  {one['pattern']}\n  Include:  yes\n"
        )
    if sub in ("search", "query"):
        return print_results(search(sub, " ".join(words[1:]), options), how)
    return fail(f"Unknown command: {sub}\nRun 'qmd --help' for usage.\n")

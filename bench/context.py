"""Figures for one request: repair, estimates and size check of a long history, its pruning, and the record
of its prefix.

    python bench/context.py [--messages 2000] [--megabytes 20] [--repeat 7]

CPU milliseconds, minimum and median of the runs. The history is decoded before the clock starts; a
quarter of the tool output is Chinese, once in results of its own and once in every result.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from lamella.agent.prefix_log import PrefixLog
from lamella.agent.request import RequestBuilder
from lamella.config.schema import PluginsSection
from lamella.models.scripted import ScriptedModel
from lamella.plugins.catalog import load_plugins
from lamella.plugins.hooks import Hooks
from lamella.text.estimate import estimate_tokens
from lamella.types.messages import AssistantMessage, Message, TextBlock, ToolCall, ToolResultMessage, UserMessage
from lamella.types.model import ModelRequest
from lamella_context_pruning import Config
from lamella_context_pruning.draft import Draft
from lamella_context_pruning.fit import fit
from lamella_context_pruning.prune import prune

ENGLISH = "src/app/window.py:118: the quick brown fox jumps over the lazy dog, and the log goes on.\n"
CHINESE = "日志：第一百一十八行，敏捷的棕色狐狸跳过了懒狗，处理仍在继续进行。\n"


def history(messages: int, megabytes: int, *, mixed: bool) -> list[Message]:
    """Turns of prompt, call, result and reply, with that much tool output together."""
    turns = messages // 4
    each = megabytes * 1_000_000 // turns
    made: list[Message] = []
    for i in range(turns):
        call = ToolCall(f"call_{i}", "read", {"path": f"src/f{i}.py"})
        texts = [ENGLISH, ENGLISH, ENGLISH, CHINESE] if mixed else [CHINESE if i % 4 == 3 else ENGLISH]
        part = each // len(texts)
        output = "".join(text * (part // len(text.encode())) for text in texts)
        made += [
            UserMessage((TextBlock(f"question {i}"),), i),
            AssistantMessage((TextBlock("I look."), call), "p", "m", "x", stop_reason="toolUse", timestamp=i),
            ToolResultMessage(call.id, "read", (TextBlock(output),), details={"lines": 9}, timestamp=i),
            AssistantMessage((TextBlock("Found it."),), "p", "m", "x", timestamp=i),
        ]
    return [*made, UserMessage((TextBlock("and now?"),), turns)]


def builder(api: str) -> RequestBuilder:
    model = ScriptedModel([], provider="p", id="m", api=api)
    hooks = Hooks(load_plugins(PluginsSection(), sources=(), slot_chosen=False))
    nobody: Any = None
    return RequestBuilder(model, hooks, nobody, estimate_tokens, "system", (), window=100_000_000)


def measured(requests: RequestBuilder, messages: list[Message]) -> float:
    """CPU milliseconds of one call."""

    async def build() -> float:
        start = time.process_time()
        await requests.build(messages, 1)
        return (time.process_time() - start) * 1000

    gc.collect()
    return asyncio.run(build())


def pruned(messages: list[Message], window: int) -> float:
    """CPU milliseconds of pruning a history with a cold cache and making it fit."""
    gc.collect()
    start = time.process_time()
    draft = Draft(messages)
    prune(draft, window, Config())
    fit(draft, window, Config())
    return (time.process_time() - start) * 1000


def recorded(request: ModelRequest, log: PrefixLog) -> float:
    """CPU milliseconds of recording what a turn sent. Estimates are left out: a turn has made them."""
    gc.collect()
    start = time.process_time()
    log.add((), request)
    return (time.process_time() - start) * 1000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--megabytes", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    for mixed in (False, True):
        for api in ("anthropic-messages", "openai-completions"):
            first, second = [], []
            for _ in range(options.repeat):
                messages = history(options.messages, options.megabytes, mixed=mixed)
                requests = builder(api)
                first.append(measured(requests, messages))
                second.append(measured(requests, messages))
            name = f"{api}, {'every result mixed' if mixed else 'a quarter of the results Chinese'}"
            print(
                f"{name}: first call {min(first):.1f} ms (median {statistics.median(first):.1f}),"
                f" next {min(second):.1f} (median {statistics.median(second):.1f})"
            )
    messages = history(options.messages, options.megabytes, mixed=True)
    for name, window in (("nothing to do", 100_000_000), ("everything trimmed", 10_000_000), ("cleared", 200_000)):
        runs = [pruned(messages, window) for _ in range(options.repeat)]
        print(f"pruning, {name}: {min(runs):.1f} ms (median {statistics.median(runs):.1f})")
    request = asyncio.run(builder("anthropic-messages").build(messages, 1))
    first, second = [], []
    for _ in range(options.repeat):
        with tempfile.TemporaryDirectory() as folder:
            log = PrefixLog(Path(folder) / "turns.jsonl", lambda _message: 0)
            first.append(recorded(request, log))
            second.append(recorded(request, log))
    print(f"record of the prefix: first turn of a process {min(first):.1f} ms, next {min(second):.1f} ms")


if __name__ == "__main__":
    main()

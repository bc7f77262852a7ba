"""Capture after a turn: what is kept of dialogues, and how much of it is junk.

    python bench/long_term/capture.py RETRIEVAL [--show]

RETRIEVAL is the folder of judged sets. Each line of locomo.open is taken for a user's message. Junk is what
says nothing lasting about its speaker: courtesies, comments, what is over the next day. It was judged by reading
all that the first version of the signs kept; `junk.json` names the places. A line that is kept and was not
judged is counted apart. "Answers a question": the set's judges took the line for evidence, which needs no
opinion of ours. `--show` prints what is kept.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from common import workspaces

from lamella_memory_lancedb import Config
from lamella_memory_lancedb.capture.signs import is_worth_keeping

JUDGED = Path(__file__).with_name("junk.json")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("retrieval", type=Path)
    arguments.add_argument("--show", action="store_true")
    given = arguments.parse_args()
    judged = {place: verdict for verdict, places in json.loads(JUDGED.read_text()).items() for place in places}
    said, kept, evidence, gold = 0, [], 0, 0
    for workspace in workspaces(given.retrieval / "locomo/locomo.open.json"):
        golden = {
            (name, n)
            for query in workspace["queries"]
            for group in query["gold"]
            for name, a, b in group
            for n in range(a, b + 1)
        }
        for name, text in workspace["files"].items():
            for number, line in enumerate(text.split("\n"), 1):
                if not line.startswith("- ") or ": " not in line:
                    continue
                message = line[2:].split(": ", 1)[1].split(" [image:")[0]
                said += 1
                gold += (name, number) in golden
                if is_worth_keeping(message, Config().capture_max_chars):
                    kept.append((f"{workspace['id']} {name} {number}", message))
                    evidence += (name, number) in golden
    if given.show:
        for place, message in kept:
            print(judged.get(place, "?"), place, message, sep="\t")
    junk = sum(judged.get(place) == "junk" for place, _message in kept)
    unjudged = sum(place not in judged for place, _message in kept)
    print(f"messages {said}, kept {len(kept)} ({len(kept) / said:.1%})")
    print(f"junk {junk} ({junk / len(kept):.1%} of what is kept), not judged {unjudged}")
    print(f"answers a question: {evidence / len(kept):.1%} of what is kept, {gold / said:.1%} of all messages")


if __name__ == "__main__":
    main()

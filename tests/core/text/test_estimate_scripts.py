"""Estimated sizes in every script lie near what tokenisers count, so that no session overflows unseen (K99)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import transcript

from lamella.agent.cut import prepare_compaction
from lamella.sessions.transcript import SessionFile
from lamella.text.estimate import estimate_text, estimate_tokens

SAMPLES = json.loads((Path(__file__).parents[2] / "data/cases/K99/samples.json").read_text("utf-8"))
BY_NAME = {sample["name"]: sample["text"] for sample in SAMPLES}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["name"])
def test_an_estimate_is_near_the_truth(sample: dict[str, Any]) -> None:
    of = BY_NAME[sample.get("perSyllableOf", sample["name"])]
    assert sample["lo"] <= estimate_text(sample["text"]) / len(of) <= sample["hi"]


def test_what_a_compaction_keeps_of_chinese_talk_is_bounded(tmp_path: Path) -> None:
    rows = transcript([(BY_NAME["zh"] * 2)[:400]] * 100)
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    file = SessionFile.open(path)
    prepared = prepare_compaction(file.context(), keep_recent_tokens=2000, reserve_tokens=100, estimate=estimate_tokens)
    assert prepared is not None
    assert 84 <= len(prepared.messages_to_summarize) + len(prepared.turn_prefix) <= 99

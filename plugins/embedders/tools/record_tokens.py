"""Record how the `tokenizers` package cuts some texts, as a reference for the tokenisers in Python.

    python plugins/embedders/tools/record_tokens.py DATA.bin tests/data/embedders/tokens.json

Needs, beside what build_static.py needs, `pip install tokenizers`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import sources
from tokenizers import Tokenizer, models

from lamella_embedders.static.datafile import load_model
from lamella_embedders.static.scripts import split_scripts

WORDPIECE_TEXTS = (
    "The staging database listens on port 5433.",
    "Don't forget: Anna's birthday is on 2024-03-17!",
    "Unbelievably, antidisestablishmentarianism wasn't mentioned.",
    "see https://example.org/a_b?c=d&e=f#g or mail me@example.org",
    'def f(x: int) -> str:\n\treturn f"{x!r:>8}"',
    "Café naïve résumé, Zürich, São Paulo, Łódź, ångström",
    "Tab\tand\r\nline\u2028separator and no-break\u00a0space",
    "«Привет, мир», сказал он. Ελληνικά γράμματα.",
    "price: 12.50 € – or £10.99; 30% off … \u201cquoted\u201d",
    "snake_case camelCase SCREAMING_CASE kebab-case",
    "soft\u00adhyphen zero\u200bwidth bell\x07",
    "rock'n'roll C++ C# F# .NET 3.11.7-rc1+build",
    "שלום עולם / مرحبا بالعالم / नमस्ते",
    "x" * 101 + " after a word that is too long",
    "🙂 emoji only words 🎉🎉",
)
UNIGRAM_RUNS = (
    "我喜欢在周末去公园散步",
    "数据库的备份保存在上海的服务器里",
    "东京都知事",
    "東京の天気はどうですか",
    "한국어로도검색할수있습니다",
    "他研究生命起源",
    "的的的的的",
    "龘靐齉爩",
    "會議紀錄與專案時程",
    "カタカナとひらがなが混ざる文章",
    "中华人民共和国全国人民代表大会常务委员会",
    "你",
)


def main() -> None:
    data, output = Path(sys.argv[1]), Path(sys.argv[2])
    model = load_model(data)
    bert = Tokenizer.from_file(str(sources.WORDPIECE_VOCABULARY.path().with_name("tokenizer.json")))
    bert.no_padding()
    bert.no_truncation()
    scored = list(zip(model.cjk.pieces, map(float, model.log_probs), strict=True))
    unigram = Tokenizer(models.Unigram([("<unk>", 0.0), *scored], unk_id=0, byte_fallback=False))
    known = set(model.cjk.pieces)
    record = {
        "wordpiece": [
            {"text": text, "tokens": [t for t in bert.encode(text, add_special_tokens=False).tokens if t != "[UNK]"]}
            for text in WORDPIECE_TEXTS
        ],
        "unigram": [
            {"text": run, "tokens": [t for t in unigram.encode(run).tokens if t in known]}
            for run in UNIGRAM_RUNS
            if split_scripts(run).cjk_runs == (run,)
        ],
    }
    output.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

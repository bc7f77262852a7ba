"""Which part of a text goes to which tokeniser."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from attrs import frozen

from lamella.text.unicode import well_formed

# Letters of Han, kana and Hangul, with iteration marks and the zero; no punctuation. After NFKC the
# half-width and compatibility forms are gone.
CJK_LETTERS = (
    "\u3005\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
_LETTER = re.compile(r"[^\W_]")


@frozen(slots=True)
class SplitText:
    """A text by script: CJK runs in order, and the rest, lower-cased, with a blank for each run.

    `cjk_share` is the part of its letters and digits that is CJK: 0 to 1, 0 for no letters.
    """

    cjk_runs: tuple[str, ...]
    rest: str
    cjk_share: float


@cache
def _run() -> re.Pattern[str]:
    return re.compile(f"[{CJK_LETTERS}]+")  # takes a millisecond, which ASCII texts need not pay


def split_scripts(text: str) -> SplitText:
    """Cut a text by script. Compatibility forms (full-width letters and so on) are unified first."""
    if text.isascii():
        return SplitText((), text.lower(), 0.0)
    folded = unicodedata.normalize("NFKC", well_formed(text))
    runs = tuple(_run().findall(folded))
    if not runs:
        return SplitText((), folded.lower(), 0.0)
    rest = _run().sub(" ", folded).lower()
    cjk = sum(map(len, runs))
    return SplitText(runs, rest, cjk / (cjk + len(_LETTER.findall(rest))))

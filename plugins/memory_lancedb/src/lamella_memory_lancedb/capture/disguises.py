"""Texts as a model reads them, though characters are invisible or look like others. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from lamella.text.segment import fold

# Letters of Cyrillic and Greek that look like Latin ones, in lower case.
_CYRILLIC = dict(zip("аеорсухіјѕһԁԛԝкмтвнӏ", "aeopcyxijshdqwkmtbhl", strict=True))
_GREEK = dict(zip("αεορυχικνητ", "aeopuxiknht", strict=True))
_TO_LATIN = str.maketrans(_CYRILLIC | _GREEK)
_TO_CYRILLIC = str.maketrans({latin: cyrillic for cyrillic, latin in _CYRILLIC.items() if cyrillic in "аеорсухкмтвн"})
_CYRILLIC_LETTER = re.compile("[\u0400-\u04ff]")

# Tags are letters that nobody sees and models read; only flags of regions are made of them rightly.
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f"
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
# Besides: zero-width blanks, soft hyphens, marks that turn the direction of writing.
_UNSEEN = re.compile(
    f"({_FLAG})|[\U000e0000-\U000e007f\u00ad\u180e\u200b\u2060-\u2064\u202a-\u202e\u2066-\u2069\ufeff]"
)
_MARKUP = re.compile(r"[*_`~|\\]+")


def without_unseen(text: str) -> str:
    """A text without characters that a person does not see and a model may read."""
    return _UNSEEN.sub(lambda found: found[1] or "", text)


def readings(text: str) -> Iterator[str]:
    """What a text may be read as, in lower case, each word once divided by one blank: as it stands without marks
    and markup, and with letters of other alphabets taken for those that they look like."""
    letters = fold(_TAGS.sub(lambda found: f" {''.join(chr(ord(tag) - 0xE0000) for tag in found[0])} ", text))
    seen = "".join(c for c in letters if c.isspace() or unicodedata.category(c) not in ("Cf", "Cc", "Mn", "Me"))
    plain = " ".join(_MARKUP.sub(" ", seen).split())
    yield plain
    latin = plain.translate(_TO_LATIN)
    if latin != plain:
        yield latin
    if _CYRILLIC_LETTER.search(plain):
        yield plain.translate(_TO_CYRILLIC)

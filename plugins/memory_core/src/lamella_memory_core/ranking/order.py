"""The order of passages: words and meaning on one scale, the file, and the day. Pure, on arrays.

Both kinds of score are taken as z-values over all N passages, so that they can be added whatever
their units are. What is shown as the score of a passage is another thing: see `shown_scores`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from lamella_memory_core.lexical.keywords import Keywords
from lamella_memory_core.warm.catalog import Catalog

if TYPE_CHECKING:
    from lamella_memory_core.arrays import Flags, Floats, Numbers, Where

FILE_PRIOR = 0.3
NEIGHBOUR_SHARE = 0.25
DAY_BONUS = 0.5
_HALF_SHARE = 0.5
# Odds that a day which the question names adds, and at which z a likeness of meaning is even odds.
_DAY_ODDS = 0.5
_EVEN_Z = 2.0
_FEW = 8.0
_BLOCK = 64
EVERYWHERE = slice(None)


def standardised(values: Floats) -> Floats:
    """z-values over all positions; zeros where all values are alike."""
    import numpy as np

    centred: Floats = values - values.mean()
    deviation = math.sqrt(np.einsum("i,i->", centred, centred) / len(centred))
    # Alike up to rounding is alike: dividing by next to nothing would make noise a signal.
    if deviation <= 1e-9 * (1.0 + max(float(values.max()), -float(values.min()))):
        return np.zeros_like(centred)
    centred /= deviation
    return centred


def fused(words: Floats | None, meaning: Floats | None, share: float) -> Floats | None:
    """z-values mixed, `share` of them from `meaning`; the one that there is when the other is None."""
    if words is None or meaning is None:
        return words if meaning is None else meaning
    mixed = share * meaning
    mixed += (1.0 - share) * words
    return mixed


def with_neighbours(z: Floats, catalog: Catalog) -> Floats:
    """Each value with a share of those before and after it in its file: what answers a question stands
    among what else is said about it."""
    import numpy as np

    share = NEIGHBOUR_SHARE * z
    firsts = catalog.starts[catalog.starts < len(z)]  # one after the other, where files have no passages
    values = np.empty_like(z)
    values[1:] = share[:-1]
    values[firsts] = share[firsts] = 0.0
    values += z
    values[:-1] += share[1:]
    return values


def order_values(z: Floats, catalog: Catalog, file_strengths: Floats, named: Flags) -> Floats:
    """What passages are ordered by: z on a scale to 1, a share of how well the whole file fits, and a
    bonus for passages of a day that the question names.

    A file of one passage gets nothing from the prior, since that would count the passage twice.
    """
    import numpy as np

    best = float(z.max(initial=0.0))
    values = z / best if best > 0 else z.copy()
    fitting = file_strengths * (1.0 - 1.0 / np.maximum(catalog.sizes, 1))
    values += np.repeat(FILE_PRIOR * fitting, catalog.sizes)
    if named.any():
        values += DAY_BONUS * named
    return values


def file_fit(keywords: Keywords, meaning: Floats | None, catalog: Catalog) -> Floats:
    """How well whole files fit, 0 to 1: by their words, and by their passage that is nearest in meaning."""
    import numpy as np

    best = float(keywords.files.max(initial=0.0))
    by_words = keywords.files / best if best > 0 else np.zeros(len(catalog.paths))
    if meaning is None:
        return by_words
    nearest = np.full(len(catalog.paths), -np.inf)
    filled = catalog.sizes > 0
    nearest[filled] = np.maximum.reduceat(meaning, catalog.starts[filled])
    top = float(nearest.max(initial=0.0))
    by_meaning = np.clip(nearest / top, 0.0, 1.0) if top > 0 else np.zeros(len(catalog.paths))
    return (by_words + by_meaning) / 2.0 if keywords.found else by_meaning


def shown_scores(keywords: Keywords, meaning: Floats | None, named: Flags, places: Where = EVERYWHERE) -> Floats:
    """Scores in [0, 1) of the passages at some places, that mean the same in a small memory and in a large one.

    Odds for a passage add up. By words they are its share of what the question says over a half: 2 for
    every word once. By meaning they are exp(z - 2), with z drawn to 0 where few passages say what is
    usual. z-values of words would not do: among N passages the only one with a word has z = √(N - 1).
    """
    import numpy as np

    count, strengths = len(keywords.passages), keywords.passages[places]
    odds = strengths / (_HALF_SHARE * keywords.whole) if keywords.whole else np.zeros(len(strengths))
    if meaning is not None:
        odds = odds + np.exp(np.minimum(meaning[places] * np.sqrt(count / (count + _FEW)), 50.0) - _EVEN_Z)
    if named.any():
        odds = odds + _DAY_ODDS * named[places]
    return odds / (1.0 + odds)


def age_factors(days: Sequence[date | None], today: date, half_life: int) -> Floats:
    """What age leaves of files, each (F,): a half every `half_life` days, and all of an undated one."""
    import numpy as np

    ages = [max((today - day).days, 0) if day else 0 for day in days]
    factors: Floats = 0.5 ** (np.array(ages, dtype=np.float64) / half_life)
    return factors


def best_positions(values: Floats, eligible: Flags, count: int) -> Numbers:
    """The `count` eligible positions with the highest values, best first; equal ones by position."""
    import numpy as np

    places = None if eligible.all() else np.flatnonzero(eligible)
    chosen = values if places is None else values[places]
    high = np.flatnonzero(chosen >= _bound(chosen, count))
    best = high[np.argsort(-chosen[high], kind="stable")][:count]
    return best if places is None else places[best]


def _bound(values: Floats, count: int) -> float:
    """A number that `count` values reach, and not many more: the least of that many blocks' maxima."""
    import numpy as np

    whole = len(values) - len(values) % _BLOCK
    blocks = values[:whole].reshape(-1, _BLOCK).max(axis=1) if count <= whole // _BLOCK else values
    if count > len(blocks) or not count:
        return -math.inf
    return float(np.partition(blocks, len(blocks) - count)[len(blocks) - count])

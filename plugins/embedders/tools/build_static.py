"""Build the data of the `static` embedder from models that Python packages carry.

    python plugins/embedders/tools/build_static.py --work /tmp/static --output static.bin

See plugins/embedders/tools/README.md for the environment it needs. Four minutes on one core; the
teachers' answers are kept in the work folder, so that a later run takes seconds.
"""

from __future__ import annotations

import os

# Sums must be made in the same order every time. Read when numpy is imported, hence up here.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import hashlib
from pathlib import Path

import distil
import numpy as np
import sources
import teachers
import vocabularies

from lamella_embedders.static.datafile import StaticModel, Table, encode_model, load_model

NAME = "lamella-static-1"
WIDTH = 256
OWN_SHARE = 0.7


def build(work: Path) -> StaticModel:
    words = vocabularies.word_pieces(sources.WORDPIECE_VOCABULARY.path())
    pieces = vocabularies.cjk_pieces(sources.E5_TOKENIZER.path())
    aligned = vocabularies.aligned_words(words)
    minilm, e5 = sources.MINILM.path(), sources.E5.path()
    word_vectors = teachers.kept(work / "words.npy", lambda: teachers.minilm_tokens(minilm, [w.id for w in words]))
    piece_vectors = teachers.kept(work / "pieces.npy", lambda: teachers.e5_words(e5, [p.text for p in pieces]))
    aligned_vectors = teachers.kept(
        work / "aligned.npy", lambda: teachers.e5_words(e5, [words[k].text for k in aligned])
    )

    latin = distil.projection(word_vectors, width=WIDTH, drop=8, whitening=0.25)
    cjk = distil.projection(piece_vectors, width=WIDTH, drop=4, whitening=0.75)
    ranks = [w.id - vocabularies.FIRST_PRINTABLE + 1 for w in words]
    word_weights = distil.rarity(distil.rank_probabilities(ranks, shift=30.0), strength=1e-4)
    log_probs = np.array([p.log_prob for p in pieces])
    piece_weights = distil.rarity(np.exp(log_probs), strength=2e-4)
    words_in_common = latin(word_vectors)
    return StaticModel(
        name=NAME,
        width=WIDTH,
        latin=Table(tuple(w.text for w in words), *distil.quantise(words_in_common * word_weights[:, None])),
        cjk=Table(tuple(p.text for p in pieces), *distil.quantise(cjk(piece_vectors) * piece_weights[:, None])),
        log_probs=log_probs,
        bridge=distil.bridge(cjk.centred(aligned_vectors), words_in_common[aligned], ridge=1.0),
        own_share=OWN_SHARE,
    )


def compare(made: Path, other: Path) -> str:
    """How alike two files are: the same bytes, or the share of equal numbers in their tables."""
    a, b = load_model(made), load_model(other)
    if a.digest == b.digest:
        return "identical"
    pairs = [(a.latin, b.latin), (a.cjk, b.cjk)]
    if any(x.pieces != y.pieces or x.rows.shape != y.rows.shape for x, y in pairs):
        return "different vocabularies"
    equal = [np.mean([(x.rows & 15) == (y.rows & 15), (x.rows >> 4) == (y.rows >> 4)]) for x, y in pairs]
    return f"equal numbers: Latin {equal[0]:.4%}, CJK {equal[1]:.4%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for the teachers' answers")
    parser.add_argument("--output", type=Path, required=True, help="the data file to write")
    parser.add_argument("--compare", type=Path, help="another data file to compare the result with")
    arguments = parser.parse_args()
    content = encode_model(build(arguments.work))
    arguments.output.write_bytes(content)
    print(f"{arguments.output}: {len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}")
    if arguments.compare:
        print(f"compared with {arguments.compare}: {compare(arguments.output, arguments.compare)}")


if __name__ == "__main__":
    main()

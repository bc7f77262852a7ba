"""How alike unrelated texts are to an embedder. Some models give 0 on average, others 0.7, and a threshold
means something only above that."""

from __future__ import annotations

import threading

from lamella.memory.meaning import Meaning, NoMeaning

# Pairs of a question and a note that have nothing to do with each other.
_QUESTIONS = (
    "What time does the train to the airport leave?",
    "How do I sort a list in Python?",
    "Which fish live in cold water?",
    "今天下午会下雨吗？",
    "红烧肉怎么做？",
    "谁写了这本小说？",
)
_NOTES = (
    "The museum closes at six on Sundays.",
    "My sister plays the violin in an orchestra.",
    "The invoice of March has been paid.",
    "我的自行车是红色的。",
    "会议改到下周三了。",
    "猫喜欢睡在窗台上。",
)
_MOST = 0.9


class Background:
    """The mean likeness of unrelated texts, asked for once for each embedder; 0 while it is not known."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning
        self._known: dict[str, float] = {}
        self._one_asks = threading.Lock()

    def likeness(self) -> float:
        """In 0 to 0.9. An embedder that cannot answer now is asked again the next time."""
        try:
            embedder = self._meaning.embedder(0.0)
            with self._one_asks:
                if embedder.identity not in self._known:
                    self._known[embedder.identity] = self._measure()
                return self._known[embedder.identity]
        except NoMeaning:
            return 0.0

    def _measure(self) -> float:
        embedder = self._meaning.embedder()
        texts = [*_QUESTIONS, *_NOTES]
        vectors = self._meaning.embed_soon(texts, embedder)
        mean = float((vectors[: len(_QUESTIONS)] @ vectors[len(_QUESTIONS) :].T).mean())
        return min(max(mean, 0.0), _MOST)

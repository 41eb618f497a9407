"""The voice of a side of self-play: it repeats nothing that the side has said in its earlier turns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from random import Random

from edgen.reading import phrase_kinds as ways
from edgen.simulator.phrases import BOOK, PhraseSpeaker, Way


class FreshVoice(PhraseSpeaker):
    """A voice that has already said its side's earlier turns."""

    __slots__ = ("_heard",)

    def __init__(
        self, rng: Random, slots: Mapping[str, str], heard: str, aspects: tuple[Way, ...] = ()
    ) -> None:
        super().__init__(rng, slots, aspects)
        self._heard = heard

    def say_one(self, ways: tuple[Way, ...]) -> str:
        """Return one of the ways, with a capital."""
        text = self._fill(self._choose_fresh_way(ways))
        return text[:1].upper() + text[1:]

    def name_of(self, family: str) -> str:
        """Return a plain name of a family of methods."""
        return self._fill(self._choose_any_way(BOOK[f"name.{family}"]))

    def _choose_fresh_way(self, ways: tuple[Way, ...]) -> Way:
        heard, said = self._heard, self._said
        misleading = _misleading()
        start = int(self._random() * len(ways))
        for step in range(len(ways)):
            way = ways[(start + step) % len(ways)]
            if id(way) not in said and id(way) not in misleading and (not heard or _probe(way) not in heard):
                break
        else:
            return super()._choose_fresh_way(ways)
        said.add(id(way))
        return way


@lru_cache(maxsize=4_096)
def _probe(way: Way) -> str:
    """Return the part of a way that identifies it."""
    return max(way[::2], key=len)[1:]


@lru_cache(maxsize=1)
def _misleading() -> frozenset[int]:
    """Return the aspects whose words look like a method: `the clearest illustration` is not a picture."""
    return frozenset([id(way) for way in BOOK["aspect"] if ways.methods(way[0])])

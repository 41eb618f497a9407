"""Expressions on near-duplicates, decided for conversations in their order.

A conversation is a near-duplicate if it is nearly the same (`texts.near_duplicates`) as an earlier kept one;
so the first of each group is kept. Memory: some hundred bytes per conversation; words are in a temporary
file.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

from edgen.evaluation.texts.corpus import Corpus
from edgen.evaluation.texts.near_duplicates import walk
from edgen.expressions.conversation import Facts
from edgen.expressions.language import Expression

KEPT = -1


class GatedConversations:
    """Conversations that must meet all of these expressions. Add all conversations, then decide."""

    def __init__(self, expressions: Sequence[Expression]) -> None:
        self._expressions = expressions
        self._corpus = Corpus()
        self._if_new, self._if_near = array("h"), array("h")  # place of the first false one, or KEPT

    def add(self, facts: Facts) -> None:
        """Add the next conversation."""
        self._corpus.add(facts.words)
        for near, found in ((False, self._if_new), (True, self._if_near)):
            facts.near_duplicate = near
            missed = (place for place, one in enumerate(self._expressions) if not one.holds(facts))
            found.append(next(missed, KEPT))

    def decide(self) -> Iterator[int]:
        """Yield for each conversation, in order, the place of the first expression that is false; KEPT if all
        are true."""
        found = array("h")

        def keep(place: int, near: bool) -> bool:
            missed = self._if_near[place] if near else self._if_new[place]
            found.append(missed)
            return missed == KEPT

        walk(self._corpus, keep)
        return iter(found)

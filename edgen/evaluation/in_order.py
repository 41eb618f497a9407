"""Expressions that ask for near-duplicates, decided conversation after conversation, in the order in which
they were told.

A conversation is a near-duplicate where it is nearly the same (`texts.near_duplicates`) as an earlier one
that is kept; so what is kept is one of each kind, whatever was made first. In memory are some hundred bytes a
conversation; words wait in a temporary file.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

from edgen.evaluation.texts.corpus import Corpus
from edgen.evaluation.texts.near_duplicates import walk
from edgen.expressions.conversation import Facts
from edgen.expressions.language import Expression

KEPT = -1


class InOrder:
    """Conversations that are to meet all of these expressions: all are added, then decided."""

    def __init__(self, expressions: Sequence[Expression]) -> None:
        self._expressions = expressions
        self._corpus = Corpus()
        self._if_new, self._if_near = array("h"), array("h")  # which expression is not met; KEPT: all are

    def add(self, facts: Facts) -> None:
        """The next conversation."""
        self._corpus.add(facts.words)
        for near, found in ((False, self._if_new), (True, self._if_near)):
            facts.near_duplicate = near
            missed = (place for place, one in enumerate(self._expressions) if not one.holds(facts))
            found.append(next(missed, KEPT))

    def decide(self) -> Iterator[int]:
        """Of each conversation, in order, the place of the first expression that it does not meet; KEPT if it
        meets all."""
        found = array("h")

        def keep(place: int, near: bool) -> bool:
            missed = self._if_near[place] if near else self._if_new[place]
            found.append(missed)
            return missed == KEPT

        walk(self._corpus, keep)
        return iter(found)

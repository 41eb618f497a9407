"""Personas: the dimensions that describe how a role behaves, as measures need them.

`edgen.space.phrases` says which dimensions are personas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from edgen.plugin import Measure, NeedsDataSet, Sample, Space, Words
from edgen.plugin.measures import Shared
from edgen.space.model import find_persona
from edgen.space.phrases import find_persona_among

FOLDED = "Mentions, recited personas and echoes"  # heads the pictures of three measures
Labels = Mapping[str, str]  # the label of each persona, by dimension


class PersonaMeasure(NeedsDataSet, Measure[Any]):
    """A measure whose columns depend on which dimensions are personas."""

    def of_personas(self, personas: Labels, sample: Sample, words: Words) -> Mapping[str, Any]:
        """Return the columns of one conversation, given its personas."""
        raise NotImplementedError

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Any]:
        return self._make_reader(space, ())(sample, words)

    def column_reader(self, shared: Shared) -> Callable[[Sample, Words], Mapping[str, Any]]:
        """Return the reader of columns. It finds personas by the data set's space or, without one, its
        roles."""
        return self._make_reader(shared.data.space, tuple(role.name for role in shared.data.roles))

    def _make_reader(
        self, space: Space | None, roles: tuple[str, ...]
    ) -> Callable[[Sample, Words], Mapping[str, Any]]:
        if space is None:
            return lambda sample, words: self.of_personas(
                _label_by_names(roles, tuple(sample.scenario.values)), sample, words
            )
        persona = find_persona(space)
        labels = {one.name: one.words for one in space.dimensions if one.name in persona}
        return lambda sample, words: self.of_personas(labels, sample, words)


@lru_cache(maxsize=64)
def _label_by_names(roles: tuple[str, ...], names: tuple[str, ...]) -> Labels:
    """Return the personas of a data set without a space."""
    persona = find_persona_among(dict.fromkeys(names, ""), roles)
    return {name: name.replace("_", " ") for name in names if name in persona}

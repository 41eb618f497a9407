"""A new split of the kept conversations, by the values of a name.

No value is on both sides; in order, the latest values are the test side. Conversations of one scenario stay
together. So conversations that are linked by equal values or scenarios, directly or through others, share a
side. In order, a scenario counts by its latest value: nothing on the train side is later than the beginning
of the test side.
"""

from __future__ import annotations

import itertools
from array import array
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec

from edgen.core.errors import UsageError
from edgen.expressions.conversation import Facts
from edgen.expressions.language import NamedTerm
from edgen.space.splits import hash_key
from edgen.stats.union_find import find_roots

_encode = msgspec.json.Encoder().encode


class NewSplit:
    """The values of a name for each conversation, in the run's order, and the groups from these values.
    Memory: a number per conversation, and each distinct value once."""

    def __init__(self, name: str, value: NamedTerm, *, in_order: bool) -> None:
        self.name = name
        self._value, self._in_order = value, in_order
        self._kind: type | None = None
        self._numbers: dict[bytes, int] = {}  # number of each distinct value, by its JSON
        self._values: list[Any] = []
        self._sets: dict[tuple[int, ...], int] = {}  # number of each set: one value, or the values of a list
        self._noted = array("q")  # the set of each conversation

    def note(self, facts: Facts) -> None:
        """Add the next conversation. Raises UsageError if values must be ordered and cannot be."""
        found = self._value.get(facts)
        if self._in_order:
            self._check(found, facts.id)
        values = found if isinstance(found, tuple) and found else (None if found == () else found,)
        numbers = tuple(sorted({self._number_value(one) for one in values}))
        self._noted.append(self._sets.setdefault(numbers, len(self._sets)))

    def _number_value(self, value: Any) -> int:
        value = int(value) if isinstance(value, float) and value.is_integer() else value
        number = self._numbers.setdefault(_encode(value), len(self._values))
        if number == len(self._values):
            self._values.append(value)
        return number

    def _check(self, found: Any, identifier: str) -> None:
        if found is None:
            return
        kind = str if isinstance(found, str) else float if isinstance(found, int | float) else None
        if kind is None or self._kind not in (None, kind):
            what = "a list" if kind is None else "a text" if kind is str else "a number"
            others = " while others have " + ("texts" if self._kind is str else "numbers") if kind else ""
            raise UsageError(
                f"--split-by {self.name}: {identifier} has {what}{others}, so its values have no order; "
                "leave --in-order out, or name something that is a text or a number everywhere."
            )
        self._kind = kind

    def list_groups(self, scenarios: Sequence[int], kept: Sequence[int]) -> list[int]:
        """Return the group of each kept conversation. `scenarios`: the scenario of every conversation.
        `kept`: places of the kept ones, in the run's order.

        Raises UsageError if no kept conversation has a value.
        """
        sets = [*self._sets]
        having = [sets[self._noted[place]] for place in kept]
        different = {number for one in having for number in one}
        if kept and all(self._values[number] is None for number in different):
            raise UsageError(f"--split-by {self.name}: none of the conversations that are kept has it.")
        where = [scenarios[place] for place in kept]
        return self._list_ranks(where, having) if self._in_order else self._list_hashes(where, having)

    def _list_ranks(self, scenarios: Sequence[int], having: Sequence[tuple[int, ...]]) -> list[int]:
        """Return the rank of each conversation by its scenario's latest value; the latest has rank 0.
        Scenarios without a value count as earliest."""
        latest: dict[int, Any] = {}
        for scenario, (number,) in zip(scenarios, having, strict=True):
            value, before = self._values[number], latest.setdefault(scenario, None)
            if value is not None and (before is None or value > before):
                latest[scenario] = value
        different = sorted({one for one in latest.values() if one is not None}, reverse=True)
        ranks: dict[Any, int] = {value: rank for rank, value in enumerate(different)}
        return [ranks.get(latest[scenario], len(ranks)) for scenario in scenarios]

    def _list_hashes(self, scenarios: Sequence[int], having: Sequence[tuple[int, ...]]) -> list[int]:
        """Return, for each conversation, the hash of all values linked with its own. A single value has the
        same hash as in a job's split by a dimension."""
        together = [pair for one in {*having} for pair in itertools.pairwise(one)]
        neighbours = itertools.pairwise(zip(scenarios, having, strict=True))
        together += [(one[0], other[0]) for (here, one), (there, other) in neighbours if here == there]
        root = find_roots(len(self._values), together)
        members: defaultdict[int, list[Any]] = defaultdict(list)
        for number in {number for one in having for number in one}:
            members[root[number]].append(self._values[number])
        name = self.name.removeprefix("scenario.")
        hashes = {one: hash_key([name, *sorted(values, key=_encode)]) for one, values in members.items()}
        return [hashes[root[one[0]]] for one in having]

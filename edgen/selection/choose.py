"""The choice of a run's conversations to keep, and the clause that removed each of the others.

Conversations are streamed once, in order. Memory: some bytes per conversation, and the index of
near-duplicates.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from edgen.core.digest import hash64
from edgen.core.errors import UsageError
from edgen.core.values import Role
from edgen.expressions.conversation import ConversationNames, Facts, Labels, make_label_value
from edgen.expressions.language import ExpressionError
from edgen.selection.clauses import Limit, WhereClause, read_limits, read_split, read_where
from edgen.selection.options import SelectOptions
from edgen.space.splits import HeldOutGroups, choose_common_side
from edgen.store.layers import LabelsByLayer, LayerJoin
from edgen.store.ledger import Clause
from edgen.store.run_reader import RunReader

_KEPT = -1
_TELL_EVERY = 1000


class ConversationChoice:
    """The choice among the accepted conversations of a run. `clauses`: in the order of application. `sha256`:
    digest of the records, in order."""

    def __init__(self, options: SelectOptions, names: ConversationNames) -> None:
        self.where = read_where(options, names)
        self.limits = read_limits(options, names)
        self.split = read_split(options, names)
        self.draw = options.draw
        self._seed = options.seed
        self._scenarios, self._tasks = array("q"), array("q")
        self._groups = array("q")  # groups of the split
        self._fates = array("h")  # place of the clause that removed a conversation, or _KEPT
        self._ranks = array("Q")  # order in which caps, balances and draws keep conversations
        self._values = [array("q") for _ in self.limits]
        self.clauses: list[Clause] = []
        self.sha256 = ""

    @property
    def accepted(self) -> int:
        return len(self._fates)

    @property
    def kept(self) -> int:
        return self._fates.count(_KEPT)

    def list_removed(self) -> Iterator[tuple[int, int, Clause]]:
        """Yield (scenario, task, clause) of each removed conversation, in order."""
        for scenario, task, fate in zip(self._scenarios, self._tasks, self._fates, strict=True):
            if fate != _KEPT:
                yield scenario, task, self.clauses[fate]

    def iterate_groups(self) -> Iterator[tuple[int, int, int]]:
        """Yield (scenario, task, group of the split) of each kept conversation, in order."""
        rows = zip(self._scenarios, self._tasks, self._groups, self._fates, strict=True)
        return ((scenario, task, group) for scenario, task, group, fate in rows if fate == _KEPT)

    def choose_side(self, share: float, *, in_order: bool = False) -> HeldOutGroups:
        """Return the test side of the kept conversations."""
        counts = Counter(group for _, _, group in self.iterate_groups())
        return choose_common_side([sorted(counts.items())], share, in_order=in_order)

    @property
    def asked_names(self) -> Iterator[str]:
        """The names that clauses, limits and the split use."""
        yield from (name for one in self.where for name in one.expression.names)
        yield from (limit.of for limit in self.limits)
        if self.split is not None:
            yield self.split.name

    # ---- each by itself

    def read_run(self, reader: RunReader, layers: LayerJoin, on_stage: Callable[[str], None]) -> None:
        """Read a run's conversations, and decide which to keep. `layers`: the layers that clauses use.
        `on_stage`: gets progress messages."""
        plain = [one for one in self.where if not one.is_ordered]
        ordered = self.where[len(plain) :]
        in_order = None
        if ordered:
            from edgen.evaluation.near_duplicate_gates import GatedConversations

            in_order = GatedConversations([one.expression for one in ordered])
        digest, numbers = hashlib.sha256(), [Numbers() for _ in self.limits]
        for scenario, task, group, data in reader.views[""].iterate_records():
            digest.update(data)
            recorded = reader.read(data)
            labels = _find_labels(layers.of(scenario, recorded.id, recorded.turns))
            facts = Facts(recorded.scenario, recorded.conversation, recorded.id, labels)
            fate = _find_first_missed(plain, facts)
            if in_order is not None and fate == _KEPT:
                in_order.add(facts)
            self._note(scenario, task, group, fate, facts, numbers)
            if len(self._fates) % _TELL_EVERY == 0:
                on_stage(f"looking at conversations: {len(self._fates):,}")
        layers.finish()
        self.sha256 = digest.hexdigest()
        if in_order is not None:
            on_stage("looking for near-duplicates")
            for place, missed in zip(self._list_alive(), in_order.decide(), strict=True):
                if missed != _KEPT:
                    self._fates[place] = len(plain) + missed
        self._tell_where()
        for limit, values in zip(self.limits, self._values, strict=True):
            self._limit(limit, values)
        if self.draw is not None:
            self._draw(self.draw)
        if self.split is not None:
            alive = self._list_alive()
            for place, group in zip(alive, self.split.list_groups(self._scenarios, alive), strict=True):
                self._groups[place] = group

    def _note(
        self, scenario: int, task: int, group: int, fate: int, facts: Facts, numbers: Sequence[Numbers]
    ) -> None:
        self._scenarios.append(scenario)
        self._tasks.append(task)
        self._groups.append(group)
        self._fates.append(fate)
        if self.limits or self.draw is not None:
            self._ranks.append(hash64(f"{self._seed}/{facts.id}"))
        for limit, number, values in zip(self.limits, numbers, self._values, strict=True):
            values.append(number[limit.value.get(facts)])
        if self.split is not None:
            self.split.note(facts)

    def _tell_where(self) -> None:
        took, left = Counter(self._fates), self.accepted
        for place, one in enumerate(self.where):
            self.clauses.append(Clause(one.name, one.expression.text, left, took[place]))
            left -= took[place]

    # ---- of all together

    def _list_alive(self) -> list[int]:
        return [place for place, fate in enumerate(self._fates) if fate == _KEPT]

    def _limit(self, limit: Limit, values: array[int]) -> None:
        alive = self._list_alive()
        counts = Counter(values[place] for place in alive)
        most = limit.most if limit.most is not None else min(counts.values(), default=0)
        seen: Counter[int] = Counter()

        def is_over_limit(place: int) -> bool:
            seen[values[place]] += 1
            return seen[values[place]] > most

        self._take(limit.name, limit.says, alive, is_over_limit)

    def _draw(self, count: int) -> None:
        alive = self._list_alive()
        drawn = {*sorted(alive, key=self._ranks.__getitem__)[:count]}
        self._take("draw", f"{count:,} at random", alive, lambda place: place not in drawn)

    def _take(self, name: str, says: str, alive: list[int], over: Callable[[int], bool]) -> None:
        """Remove the conversations for which `over` returns True, by a clause of this name. They are tested
        in the order of ranks."""
        gone = [place for place in sorted(alive, key=self._ranks.__getitem__) if over(place)]
        for place in gone:
            self._fates[place] = len(self.clauses)
        self.clauses.append(Clause(name, says, len(alive), len(gone)))


class Numbers(dict[Any, int]):
    """A number for each value, in the order of first use. A missing value counts as a value."""

    def __missing__(self, value: Any) -> int:
        self[value] = number = len(self)
        return number


def _find_labels(found: LabelsByLayer) -> Labels:
    """Return the function that looks up a conversation's majority labels in expressions."""

    def get(layer: str, _conversation: str) -> Sequence[tuple[Role, str]] | float | None:
        if layer not in found:
            return None
        return make_label_value((unit.turn, unit.role, unit.labels) for unit in found[layer])

    return get


def _find_first_missed(clauses: Sequence[WhereClause], facts: Facts) -> int:
    for place, one in enumerate(clauses):
        try:
            if not one.expression.holds(facts):
                return place
        except ExpressionError as problem:
            raise UsageError(f"--where, of conversation {facts.id}, {problem}") from None
    return _KEPT

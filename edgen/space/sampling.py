"""Scenarios drawn from a space: scenario i depends only on (seed, i, content of the space).

No state is kept between draws, so indices may come in any order, on any machine, and a larger N begins with
the smaller N's scenarios. Four designs:

* `even`, the usual one: every value of every dimension is equally frequent, to within one, in every prefix.
* `random`: each dimension is drawn by weight, with replacement, among the values that its conditions allow;
  excluded combinations are drawn again.
* `balanced`: every allowed cell is equally frequent, to within one, in every prefix, in a pseudo-random
  order. It ignores weights, so entries of weight 0 occur, too. If conditions link too many values to count
  the allowed cells, values are drawn as in `random`, with equal weights.
* `pairwise`: first a covering array, in which every allowed pair (or triple) of values occurs, then
  `balanced`.

In the design `even`, each dimension goes through its values in passes. A pass has every value once, in its
own order, independent of the other dimensions: Latin hypercube sampling, repeated (McKay, Beckman and
Conover, Technometrics 21, 1979). Dimensions that conditions or exclusions link are drawn together
(`linked_draws`).

With weights, a pass has several copies of an entry, in proportion to its weight. Copy k of m, in a pass of n
slots, is placed in the window of slots [floor((k - 1) n / m) + 1, ceil(k n / m)]. This keeps the count of
each entry within one of its share at every slot (Baruah, Cohen, Plaxton and Varvel, "Proportionate progress:
a notion of fairness in resource allocation", Algorithmica 15, 1996). At each slot one of the copies with an
open window is drawn by weight, among those that leave a slot for all others (Hall's condition, kept as
slack). Pseudo-random numbers come from a keyed hash, so they are the same on every machine.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

from edgen.core.values import Scenario
from edgen.space.model import Space
from edgen.space.parse import digest_content
from edgen.space.permutation import MASK, mix

if TYPE_CHECKING:
    from edgen.space.cells import AllowedCells
    from edgen.space.linked_draws import LinkedDraws
    from edgen.space.other_designs import BalancedDraws, RandomDraws

Design = Literal["even", "balanced", "random", "pairwise"]
_STEP = 0x9E3779B97F4A7C15  # of splitmix64: 2**64 divided by the golden ratio
_MOST_SLOTS = 4_000  # slots of a pass with weights, unless the dimension has more entries
_ERA = 100  # passes
_EXACT = 1e-7  # tolerance, in slots, for an exact number of copies


class Sampler:
    """The scenarios of one space, seed and design. `space` must be valid, as returned by `load_space`.

    `covering` is the number of scenarios in the covering array of `pairwise`; 0 in other designs.
    """

    def __init__(self, space: Space, seed: int, design: Design, strength: int = 2) -> None:
        name = design if design != "pairwise" else f"{design} {strength}"
        key = hashlib.blake2b(f"{name}/{seed}/{digest_content(space)}".encode(), digest_size=32).digest()
        self._space = space
        if design == "even" and not space.conditional:
            self._design: EvenDraws | RandomDraws | BalancedDraws = EvenDraws(space, key)
        else:
            self._design = self._make_design(key, design)
        self._rows = _make_covering_rows(self.cells, strength, key) if design == "pairwise" else []
        self.covering = len(self._rows)
        self._values = [(dimension.name, dimension.values) for dimension in space.dimensions]
        self._fields = [
            (place, dimension.name, [entry.fields for entry in dimension.entries])
            for place, dimension in enumerate(space.dimensions)
            if dimension.fields
        ]

    def _make_design(self, key: bytes, design: Design) -> EvenDraws | RandomDraws | BalancedDraws:
        """Return the draws of a design that is not `even`, or of a space with conditions or exclusions."""
        from edgen.space.other_designs import BalancedDraws, RandomDraws

        if design == "random" or self.cells.count is None:
            return RandomDraws(self._space, key, weighted=design in ("random", "even"))
        if design == "even":
            return EvenDraws(self._space, key, self.cells)
        return BalancedDraws(self.cells, self.cells.count, key)

    @cached_property
    def cells(self) -> AllowedCells:
        """The allowed cells."""
        from edgen.space.cells import AllowedCells

        return AllowedCells(self._space)

    def scenario(self, index: int) -> Scenario:
        """Return scenario `index`, counted from 0. Raises ValueError below 0."""
        if index < 0:
            raise ValueError(f"a scenario's index counts from 0; {index} is below")
        if index < self.covering:
            return self.make_scenario(index, self._rows[index])
        return self.make_scenario(index, self._design.list_positions(index - self.covering))

    def make_scenario(self, index: int, positions: Sequence[int]) -> Scenario:
        """Return the scenario with these entries. `positions`: the place of each dimension's entry."""
        values = {name: texts[at] for (name, texts), at in zip(self._values, positions, strict=True)}
        if not self._fields:
            return Scenario(index, values)
        said = ((name, entries[positions[place]]) for place, name, entries in self._fields)
        return Scenario(index, values, {name: fields for name, fields in said if fields})


# This process's covering arrays, by everything that determines them.
_ARRAYS: dict[bytes, list[tuple[int, ...]]] = {}


def _make_covering_rows(cells: AllowedCells, strength: int, key: bytes) -> list[tuple[int, ...]]:
    """Return the covering array, which is made once: it can take seconds, and every arm and plan uses it."""
    if key not in _ARRAYS:
        from edgen.space.covering import build_covering_array

        _ARRAYS[key] = build_covering_array(cells, strength, key)
    return _ARRAYS[key]


class EvenDraws:
    """The draws of the design `even`, for one space and key. `cells`: the allowed cells, if the space has
    conditions or exclusions."""

    def __init__(self, space: Space, key: bytes, cells: AllowedCells | None = None) -> None:
        self._dimensions = space.dimensions
        self._make_draws = partial(Passes, key=hashlib.blake2b(b"even", digest_size=32, key=key).digest())
        self._linked: list[LinkedDraws] = []
        if cells is not None:
            from edgen.space.linked_draws import LinkedDraws, group_linked_places

            groups = group_linked_places(space)
            self._linked = [LinkedDraws(space, cells, places, self._make_draws) for places in groups]
        self._passes: list[tuple[int, Passes]] = []  # of unlinked dimensions, made at the first draw

    def list_positions(self, index: int) -> list[int]:
        """Return the place of each dimension's entry in scenario `index`."""
        found = [0] * len(self._dimensions)
        if not self._passes:
            self._passes = self._make_passes()
        for place, passes in self._passes:
            order, slot = passes.order, index - passes.first
            found[place] = order[slot] if 0 <= slot < len(order) else passes.draw(index)[0]
        for linked in self._linked:
            linked.draw(index, found)
        return found

    def _make_passes(self) -> list[tuple[int, Passes]]:
        elsewhere = {place for linked in self._linked for place in linked.places}
        return [
            (place, self._make_draws([entry.weight for entry in one.entries], None, f"{one.name}/()"))
            for place, one in enumerate(self._dimensions)
            if place not in elsewhere
        ]


def derive_numbers(name: str, key: bytes) -> Iterator[int]:
    """Yield endless pseudo-random integers of 64 bits, determined by a name and a key of at most 64 bytes."""
    state = _derive_state(name, key)
    while True:
        state = (state + _STEP) & MASK
        yield mix(state)


def _derive_state(name: str, key: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8, key=key).digest(), "little")


class Passes:
    """Draws of entries, pass after pass. Entries of weight 0 are never drawn; at least one needs more weight.

    `groups`: the group of each entry, for counting earlier draws of a group; None: no counting. `name` and
    `key` determine the order.
    """

    def __init__(self, weights: Sequence[float], groups: Sequence[int] | None, name: str, key: bytes) -> None:
        self._entries = [at for at, weight in enumerate(weights) if weight]
        self._copies = _Copies([weights[at] for at in self._entries])
        self._groups = groups
        self._name = name
        self._key = key
        # The latest pass: the index of its first draw, its order, and the number of earlier draws of the same
        # group, by slot.
        self.first, self.order = 0, list[int]()
        self._before: list[int] = []

    def draw(self, index: int) -> tuple[int, int]:
        """Return the entry of draw `index`, from 0, and the number of earlier draws of its group."""
        slot = index - self.first
        if not 0 <= slot < len(self.order):
            number, slot = divmod(index, self._copies.slots)
            name = f"{self._name}/{number}"
            copies, earlier = self._copies.of_pass(number)
            equal = self._copies.slots == len(copies) == sum(map(bool, copies))
            chosen = (
                shuffle(len(copies), name, self._key)
                if equal
                else order_by_weight(copies, derive_numbers(name, self._key))
            )
            self.first, self.order = index - slot, [self._entries[one] for one in chosen]
            if self._groups is not None:
                self._before = self._count_before(self._groups, earlier)
        return self.order[slot], index if self._groups is None else self._before[slot]

    def _count_before(self, groups: Sequence[int], earlier: Sequence[int]) -> list[int]:
        counts = dict.fromkeys(groups, 0)
        for entry, many in zip(self._entries, earlier, strict=True):
            counts[groups[entry]] += many
        before = []
        for entry in self.order:
            before.append(counts[groups[entry]])
            counts[groups[entry]] += 1
        return before


class _Copies:
    """The number of copies of each entry in each pass.

    If the weights are in the ratio of small whole numbers, these numbers are the copies in every pass. If
    not, each pass has the shares rounded down, and the remaining slots go to the entries in turn: the
    earliest deadline first (Tijdeman, "The chairman assignment problem", Discrete Mathematics 32, 1980). Then
    the copies in all passes so far are within one of the share. The sequence repeats after `_ERA` passes, so
    any pass is quick to compute.
    """

    def __init__(self, weights: Sequence[float]) -> None:
        exact = find_whole_numbers(weights)
        self.slots = sum(exact) if exact else max(_MOST_SLOTS, len(weights))
        shares = [weight / sum(weights) * self.slots for weight in weights]
        self._least = exact or [int(share) for share in shares]
        self._left = self.slots - sum(self._least)  # slots of each pass
        rest = [(share - least) * _ERA for share, least in zip(shares, self._least, strict=True)]
        self._more = _round_to_sum(rest, self._left * _ERA)  # copies beyond the minimum, in an era
        self._pass = 0  # the current pass within an era
        self._given = [0] * len(weights)  # extra copies before the current pass

    def of_pass(self, number: int) -> tuple[list[int], list[int]]:
        """Return the copies of each entry in pass `number`, from 0, and in all passes before it."""
        if not self._left:
            return self._least, [number * many for many in self._least]
        era, place = divmod(number, _ERA)
        if place < self._pass:
            self._pass, self._given = 0, [0] * len(self._given)
        while self._pass < place:
            self._given = self._give()
            self._pass += 1
        given, after = self._given, self._give()
        ones = range(len(given))
        return (
            [self._least[one] + after[one] - given[one] for one in ones],
            [number * self._least[one] + era * self._more[one] + given[one] for one in ones],
        )

    def _give(self) -> list[int]:
        """Return `_given` after the current pass."""
        given = [*self._given]
        entries = [one for one, more in enumerate(self._more) if more]
        margin = 1 / max(2, 2 * len(entries) - 2)
        for step in range(1, self._left + 1):
            turn = (self._pass + step / self._left) / _ERA
            owed = {one: turn * self._more[one] - given[one] for one in entries}
            due = [one for one in entries if owed[one] >= margin - _EXACT]
            wait = {one: (1 - margin - owed[one]) / self._more[one] for one in due or entries}
            given[min(wait, key=wait.__getitem__)] += 1
        return given


def _round_to_sum(numbers: Sequence[float], total: int) -> list[int]:
    """Round numbers up or down so that they sum to `total`, the largest fractions up."""
    rounded = [int(number) for number in numbers]
    by_fraction = sorted(range(len(numbers)), key=lambda one: rounded[one] - numbers[one])
    for one in by_fraction[: total - sum(rounded)]:
        rounded[one] += 1
    return rounded


def shuffle(size: int, name: str, key: bytes) -> list[int]:
    """Return [0, size) in a pseudo-random order (Fisher and Yates), with the numbers of `derive_numbers`."""
    order = list(range(size))
    state = _derive_state(name, key)
    for last in range(size - 1, 0, -1):
        # `derive_numbers` inlined: every scenario takes one number for each of its dimensions
        state = (state + _STEP) & MASK
        value = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
        at = (value ^ (value >> 31)) * (last + 1) >> 64
        order[last], order[at] = order[at], order[last]
    return order


def find_whole_numbers(weights: Sequence[float]) -> list[int] | None:
    """Return the smallest whole numbers in the ratio of positive weights; None if their sum exceeds the slots
    of a pass."""
    total = sum(weights)
    shares = [weight / total for weight in weights]
    for slots in range(len(weights), max(_MOST_SLOTS, len(weights)) + 1):
        numbers = []
        for share in shares:
            number = round(share * slots)
            if number < 1 or abs(share * slots - number) > _EXACT:
                break
            numbers.append(number)
        else:
            return numbers
    return None


def order_by_weight(copies: Sequence[int], numbers: Iterator[int]) -> list[int]:
    """Return the order of one pass: each entry once per copy, each copy within its window.

    `numbers`: pseudo-random numbers of 64 bits.
    """
    slots = sum(copies)
    slack = _find_slack(copies, slots)
    # slots that copies due by then fill completely
    tight = [slot for slot in range(1, slots + 1) if not slack[slot]]
    used, order = [0] * len(copies), []
    for slot in range(1, slots + 1):
        while tight[0] < slot:
            heapq.heappop(tight)
        open_now = []
        for one, many in enumerate(copies):
            if used[one] == many:
                continue
            first, last = used[one] * slots // many + 1, -(-(used[one] + 1) * slots // many)
            if first <= slot and last <= tight[0]:
                left = (used[one] + 1) * slots - (slot - 1) * many  # of the window, in 1 / many slots
                open_now.append((many / left, one, last))
        one, last = _choose(open_now, next(numbers))
        used[one] += 1
        order.append(one)
        for later in range(slot, last):
            slack[later] -= 1
            if not slack[later]:
                heapq.heappush(tight, later)
    return order


def _find_slack(copies: Sequence[int], slots: int) -> list[int]:
    """Return, for each slot from 1, the number of slots up to it that copies due by then do not need."""
    due = [0] * (slots + 1)
    for many in copies:
        for copy in range(1, many + 1):
            due[-(-copy * slots // many)] += 1
    slack = [0] * (slots + 1)
    for slot in range(1, slots + 1):
        slack[slot] = slack[slot - 1] + 1 - due[slot]
    return slack


def _choose(open_now: Sequence[tuple[float, int, int]], number: int) -> tuple[int, int]:
    """Draw one of the open copies by weight. A copy is (weight, entry, last slot of its window)."""
    at = number / 2**64 * sum(weight for weight, _, _ in open_now)
    for weight, one, last in open_now[:-1]:
        at -= weight
        if at < 0:
            return one, last
    return open_now[-1][1:]

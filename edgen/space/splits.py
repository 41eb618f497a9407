"""The choice of the test side: by hash, in whole groups.

A group is all conversations that share a scenario, a dimension's value, or the values of several.
`hash_group` depends only on the group's identity; `choose` uses only hashes and counts. So the split is
order-independent.
"""

from __future__ import annotations

import heapq
import itertools
from array import array
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

import msgspec

from edgen.core.digest import hash64
from edgen.core.space_layouts import list_layouts
from edgen.core.values import Scenario
from edgen.core.yaml_values import suggest_name
from edgen.space.model import Space

By = str | tuple[str, ...]  # `scenario`, a group of a layout, or names of dimensions
Group = tuple[int, int]  # hash, number of conversations

# Number of groups that are optimised together.
WINDOW = 256
_NONE = Fraction(0)

_encode = msgspec.json.Encoder().encode


def hash_group(by: By, seed: int, scenario: Scenario) -> int:
    """Return the hash in [0, 2**63) of the group of `scenario`.

    A group of values has the same hash in every job; a scenario, identified by its number, hashes with the
    job's `seed`.
    """
    key: Sequence[object]
    if by == "scenario":
        key = (by, seed, scenario.index)
    elif isinstance(by, str) and (named := _find_group(by, scenario.values)):
        key = (by, *map(scenario.__getitem__, named))
    elif isinstance(by, str):
        key = (by, scenario[by])
    else:
        key = [part for name in by for part in (name, scenario[name])]
    return hash_key(key)


def _find_group(name: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the dimensions of a layout's group of this name if the space has all of them. Return none if
    there is no such group, or a dimension has its name."""
    if name in names:
        return ()
    found = (one.groups[name] for one in list_layouts() if name in one.groups)
    return next((group for group in found if {*group} <= {*names}), ())


def hash_key(key: Sequence[object]) -> int:
    """Return the hash of a group by its identity, a sequence of plain values."""
    return hash64(_encode(key)) >> 1


def explain_split_problem(by: By, space: Space) -> str | None:
    """Explain why a space's conversations cannot be split by `by`; None if they can."""
    if by == "scenario" or (isinstance(by, str) and _find_group(by, space.names)):
        return None
    names = (by,) if isinstance(by, str) else by
    unknown = next((name for name in names if name not in space.names), None)
    if unknown is not None:
        known = ["scenario", *space.names] if isinstance(by, str) else space.names
        return f"the space has no dimension {unknown}{suggest_name(unknown, known)}"
    if not names or len({*names}) < len(names):
        return "expected each dimension once, and at least one"
    return None


class HeldOutGroups(msgspec.Struct, frozen=True):
    """The test side: groups with a hash below `below` that are not in `spared`, and those in `chosen`."""

    below: int = 0
    chosen: frozenset[int] = frozenset()
    spared: frozenset[int] = frozenset()
    count: int = 0  # conversations on this side

    def is_test(self, group: int) -> bool:
        """Return whether the group with this hash is on the test side."""
        return group in self.chosen or (group < self.below and group not in self.spared)


def choose_test_side(groups: Iterable[Group], share: float) -> HeldOutGroups:
    """Return the test side whose count is as close to `share` of the total as whole groups allow.

    `groups` are (hash, count) by ascending hash; counts with the same hash add up. They are read once and
    held in 16 bytes each. With up to WINDOW groups, the choice is the closest possible. With more, the heavy
    ones, which hold over 1/WINDOW of the total each, are chosen first. The others follow in the order of
    their hash. WINDOW of them, half of these the smallest, are chosen last to fill the remainder.

    Of two equally close choices, the larger is taken. The test side never gets everything. It gets nothing if
    even the smallest group is not closer to the share. Raises ValueError if the hashes do not ascend.
    """
    if share <= 0:
        return HeldOutGroups()
    hashes, counts = _read(groups)
    total = sum(counts)
    target = Fraction(repr(share)) * total
    if not total:
        return HeldOutGroups()
    heavy = [i for i, count in enumerate(counts) if count * WINDOW > total] if len(counts) > WINDOW else []
    picked = _choose_heavy_side([(i, counts[i]) for i in heavy], total, target)
    taken = sum(counts[i] for i in picked)

    weighed = set(heavy)
    spare = _choose_spare(counts, weighed)
    weighed.update(spare)
    light = total - sum(counts[i] for i in heavy)
    # The spare groups take a part of the remainder, so that they can correct it in both directions.
    part = min(max(target - taken, _NONE), Fraction(light)) / light
    aim = int(target - part * sum(counts[i] for i in spare))
    end = None
    for i, count in enumerate(counts):
        if i in weighed:
            continue
        if taken + count > aim:
            end = i if end is None else end
            continue
        taken += count
        if end is not None:
            picked.add(i)
    last = _find_closest([counts[i] for i in spare], max(target - taken, _NONE), total - taken)
    picked.update(spare[k] for k in last)
    return HeldOutGroups(
        below=hashes[-1] + 1 if end is None else hashes[end],
        chosen=frozenset(hashes[i] for i in picked),
        spared=frozenset(hashes[i] for i in weighed - picked),
        count=taken + sum(counts[spare[k]] for k in last),
    )


def choose_first_groups(groups: Iterable[Group], share: float) -> HeldOutGroups:
    """Return the test side of numbered groups: the first ones, as many as come closest to `share`."""
    if share <= 0:
        return HeldOutGroups()
    hashes, counts = _read(groups)
    total = sum(counts)
    target = Fraction(repr(share)) * total
    best = HeldOutGroups()
    for end, count in zip(hashes[1:], itertools.accumulate(counts), strict=False):
        if abs(count - target) <= abs(best.count - target):
            best = HeldOutGroups(below=end, count=count)
    return best


def choose_common_side(
    parts: Iterable[Iterable[Group]], share: float, *, in_order: bool = False
) -> HeldOutGroups:
    """Return the common test side of several data sets, so that no group is on both sides. `parts` are the
    groups of each data set, by ascending hash. With `in_order`, the first groups are the test side."""
    choose = choose_first_groups if in_order else choose_test_side
    return choose(heapq.merge(*parts), share)


def _read(groups: Iterable[Group]) -> tuple[array[int], array[int]]:
    """Return the hashes and the counts of all groups that are not empty."""
    hashes, counts = array("q"), array("q")
    previous = -1
    for group, count in groups:
        if group < previous:
            raise ValueError("the groups' hashes must ascend")
        if count <= 0:
            continue
        if group == previous:
            counts[-1] += count
        else:
            hashes.append(group)
            counts.append(count)
            previous = group
    return hashes, counts


def _choose_spare(counts: Sequence[int], apart: set[int]) -> list[int]:
    """Return the groups to choose last, in order: half of them the smallest, half those with the highest
    hash."""
    others = (i for i in range(len(counts)) if i not in apart)
    spare = set(heapq.nsmallest(WINDOW // 2, others, key=counts.__getitem__))
    highest = (i for i in reversed(range(len(counts))) if i not in apart and i not in spare)
    spare.update(itertools.islice(highest, WINDOW // 2))
    return sorted(spare)


def _choose_heavy_side(heavy: Sequence[Group], total: int, target: Fraction) -> set[int]:
    """Return the heavy groups to choose: their part of the target if the light ones can fill the rest."""
    counts = [count for _, count in heavy]
    part = target / total
    light = total - sum(counts)
    picked = _find_closest(counts, part * sum(counts), 0, under=light - part * light, over=part * light)
    return {heavy[k][0] for k in picked}


def _find_closest(
    counts: Sequence[int],
    target: Fraction,
    forbidden: int,
    *,
    under: Fraction = _NONE,
    over: Fraction = _NONE,
) -> list[int]:
    """Return the indexes of the counts whose sum is closest to `target` but is not `forbidden` (0: every sum
    is allowed).

    Others can compensate a deficit up to `under` or an excess up to `over`, so sums within these limits are
    preferred. Subset sum by dynamic programming: bit s of `reach[i]` is set if the first i counts can make
    the sum s. Sums beyond the mask are not kept, since the empty sum is closer.
    """
    mask = (1 << (int(2 * target + over) + 1)) - 1
    reach = [1]
    for count in counts:
        reach.append((reach[-1] | reach[-1] << count) & mask)
    sums = reach[-1] & ~(1 << forbidden) if forbidden > 0 else reach[-1]
    low = sums & ((1 << (int(target) + 1)) - 1)
    high = sums >> (int(target) + 1)
    best = low.bit_length() - 1
    if high:
        above = int(target) + 1 + (high & -high).bit_length() - 1
        much, little = above - target, target - best
        if (max(much - over, 0), much) <= (max(little - under, 0), little):
            best = above
    picked = []
    for i in reversed(range(len(counts))):
        if not reach[i] >> best & 1:
            picked.append(i)
            best -= counts[i]
    return picked

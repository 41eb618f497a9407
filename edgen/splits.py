"""Which groups of conversations make up the test side: decided by hash, whole groups only.

A group is all conversations that share a scenario, a topic or a persona. `group_hash` depends on
what the group is and on nothing else; `choose` looks at hashes and counts alone. So the same
groups give the same split, in whatever order they were made.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal

import msgspec

from edgen.model import Scenario

By = Literal["scenario", "topic", "persona"]
Group = tuple[int, int]  # hash, conversations

# So many groups are weighed against each other; all the others follow from their hash alone.
WINDOW = 256

_encode = msgspec.json.Encoder().encode


def group_hash(by: By, seed: int, scenario: Scenario) -> int:
    """The hash in [0, 2**63) of the group that `scenario` belongs to.

    A topic or a persona hashes alike in every job; a scenario, which is known by its number, hashes
    with the job's `seed`.
    """
    key: tuple[str | int, ...]
    match by:
        case "scenario":
            key = (by, seed, scenario.index)
        case "topic":
            key = (by, scenario.topic)
        case "persona":
            key = (
                by,
                scenario.student_preference,
                scenario.student_reaction,
                scenario.teacher_preference,
                scenario.teacher_reaction,
            )
    return int.from_bytes(hashlib.blake2b(_encode(key), digest_size=8).digest()) >> 1


class Side(msgspec.Struct, frozen=True):
    """The test side: all groups with a hash below `below`, and those in `chosen`."""

    below: int = 0
    chosen: frozenset[int] = frozenset()
    count: int = 0  # conversations on this side

    def is_test(self, group: int) -> bool:
        """Whether the group with this hash is on the test side."""
        return group < self.below or group in self.chosen


def choose(groups: Iterable[Group], total: int, share: float) -> Side:
    """The test side whose count is as close to `share * total` as whole groups allow.

    `groups` are (hash, count) with hashes strictly ascending and counts that add up to `total`;
    they are read once, and not further than needed. Up to WINDOW groups the choice is exactly the
    closest; with more, groups are taken in the order of their hash until WINDOW of them hold about
    twice what is missing, and among these the closest choice is taken.

    Of two choices equally close the larger is taken. The test side never gets everything, and gets
    nothing if nothing is closer to the share than the smallest group is. Raises ValueError if the
    hashes do not ascend.
    """
    target = Fraction(repr(share)) * total
    if target <= 0:
        return Side()
    twice = int(2 * target)
    window: deque[Group] = deque()
    held = taken = below = 0
    for group in _ascending(groups):
        if len(window) == WINDOW:
            first = window[0][1]
            if 2 * (taken + first) + held - first > twice:
                break
            below = window.popleft()[0] + 1
            taken += first
            held -= first
        window.append(group)
        held += group[1]
    counts = [count for _, count in window]
    picked = _closest(counts, target - taken, forbidden=total - taken)
    chosen = frozenset(window[i][0] for i in picked)
    return Side(below, chosen, taken + sum(counts[i] for i in picked))


def _ascending(groups: Iterable[Group]) -> Iterable[Group]:
    previous = -1
    for group in groups:
        if group[0] <= previous:
            raise ValueError("the groups' hashes must be strictly ascending")
        previous = group[0]
        if group[1] > 0:
            yield group


def _closest(counts: Sequence[int], target: Fraction, forbidden: int) -> list[int]:
    """Indexes of the counts whose sum is closest to `target` without being `forbidden`.

    Subset sum by dynamic programming: bit s of `reach[i]` says whether the first i counts can make
    the sum s. No sum above twice the target can be closer than the empty one, so none is kept.
    """
    mask = (1 << (int(2 * target) + 1)) - 1
    reach = [1]
    for count in counts:
        reach.append((reach[-1] | reach[-1] << count) & mask)
    sums = reach[-1] & ~(1 << forbidden) if forbidden > 0 else reach[-1]
    low = sums & ((1 << (int(target) + 1)) - 1)
    high = sums >> (int(target) + 1)
    best = low.bit_length() - 1
    if high:
        above = int(target) + 1 + (high & -high).bit_length() - 1
        if above - target <= target - best:
            best = above
    picked = []
    for i in reversed(range(len(counts))):
        if not reach[i] >> best & 1:
            picked.append(i)
            best -= counts[i]
    return picked

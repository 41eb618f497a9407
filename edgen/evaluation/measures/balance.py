"""Balance of roles: each role's share of words and turns, and who begins.

With a teacher and a student, only the teacher's share is shown. A conversation without words has no share of
words; one without turns does not count.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable

import msgspec

from edgen.plugin import Histogram, Measure, OwnCount, Sample, Tally, Words
from edgen.plugin.measures import ROLES, ByKey, Panel, Shared
from edgen.plugin.statistics import Distribution, summarize_shares


class RoleShares(msgspec.Struct, frozen=True):
    """A role's share of each conversation's words and turns."""

    words: Distribution
    turns: Distribution


class Balance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The teacher's share of each conversation's words and turns, or `shares` by role if others speak than a
    teacher and a student; `begins`: conversations by first speaker."""

    teacher_words: Distribution | None = None
    teacher_turns: Distribution | None = None
    begins: dict[str, int]
    shares: dict[str, RoleShares] = {}

    @property
    def by_role(self) -> dict[str, RoleShares]:
        """The shares to show."""
        if self.teacher_words is None or self.teacher_turns is None:
            return self.shares
        return {ROLES[0].lower(): RoleShares(self.teacher_words, self.teacher_turns)}


_SPREAD = "{{mean:.0%}} of {}, from {{p5:.0%}} (5%) to {{p95:.0%}} (95%)"


class BalanceMeasure(OwnCount, Measure[Balance]):
    name = "balance"
    definition = (
        "The teacher's share of a conversation's words and turns (each role's, in other spaces), and who "
        "speaks first. edgen's own definition; words and quantiles as in lengths."
    )
    order = 3
    section = "shape"

    def start(self, shared: Shared) -> BalanceCount:
        return BalanceCount([role.name for role in shared.data.roles])

    aggregates = (
        ByKey(
            "by_role",
            each=(
                Histogram(
                    "words", label="{key}'s words", says=_SPREAD.format("words"), shares=True, title="{key}"
                ),
                Histogram("turns", label="{key}'s turns", says=_SPREAD.format("turns"), shares=True),
            ),
        ),
        Tally("begins", label="begins"),
    )
    panels = (
        Panel(
            "balance", "Share of the words, by role", ("by_role.words",),
            "Equal shares mean a balanced conversation. Look for conversations near the right edge: one role "
            "says everything.",
            colour_keys=True,
        ),
    )  # fmt: skip


class BalanceCount:
    """The running count; it keeps 16 bytes per conversation and role."""

    def __init__(self, roles: Iterable[str] = ROLES) -> None:
        self._begins: Counter[str] = Counter(dict.fromkeys(roles, 0))
        self._pair = {*roles} == {*ROLES}
        self._shares = {role: (array("d"), array("d")) for role in (ROLES[:1] if self._pair else roles)}

    def see(self, sample: Sample, words: Words) -> None:
        if not sample.turns:
            return
        roles, lengths = [turn.role for turn in sample.turns], [*map(len, words)]
        if not self._pair:
            for role in roles:
                self._shares.setdefault(role, (array("d"), array("d")))
        total = sum(lengths)
        for role, (of_words, of_turns) in self._shares.items():
            if total:
                own = [length for speaker, length in zip(roles, lengths, strict=True) if speaker == role]
                of_words.append(sum(own) / total)
            of_turns.append(roles.count(role) / len(roles))
        self._begins[roles[0]] += 1

    def result(self) -> Balance:
        shares = {
            role: RoleShares(summarize_shares(words), summarize_shares(turns))
            for role, (words, turns) in self._shares.items()
        }
        if not self._pair:
            return Balance(begins=dict(self._begins), shares=shares)
        teacher = shares[ROLES[0]]
        begins = {role: self._begins[role] for role in ROLES}
        return Balance(teacher_words=teacher.words, teacher_turns=teacher.turns, begins=begins)


MEASURE = BalanceMeasure()

"""A report's contents as values, first collected from a run, then laid out as a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from edgen.core.space_layouts import find_layout
from edgen.core.text import describe_value, readable_name
from edgen.core.values import Turn
from edgen.evaluation.comparison.result import ComparisonResult
from edgen.evaluation.measuring import ArmMeasures
from edgen.families.base import Recorded
from edgen.stats.distributions import Distribution
from edgen.store.ledger import LedgerSession, RunStatus


class RejectedExample(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation that was not accepted. `reply` is the last raw reply, truncated to `gather.CUT` of
    `length` characters; None without an answer."""

    id: str
    detail: str | None
    reply: str | None
    length: int


class RejectionGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The conversations not accepted for one reason. `status` is rejected or failed; `examples` are the first
    ones."""

    status: str
    reason: str
    count: int
    examples: tuple[RejectedExample, ...]
    says: str = ""
    """A clause that explains a reason that the protocol declares."""


class ArmReport(msgspec.Struct, frozen=True, kw_only=True):
    """A run, or one arm of it."""

    label: str
    """The arm's name, "" without arms."""
    name: str  # the arm's, or the run's without arms
    job: dict[str, Any]
    """The resolved job."""
    status: RunStatus  # counts of its outcomes and calls
    simulated: bool  # no model wrote at least one answer
    sessions: tuple[LedgerSession, ...]
    """The ledger's sessions."""
    latency: Distribution
    """Decimal logarithms of the seconds of each stored answer."""
    quality: ArmMeasures  # values of the measures
    reasons: tuple[RejectionGroup, ...]  # conversations not accepted, by reason
    guide: Any = None
    """See `RolesAndSettings.guide`."""
    family: Any = None
    """The family of its conversations; None for several kinds."""
    roles: tuple[str, ...] = ()
    """The names of the roles that may speak."""

    @property
    def outcomes(self) -> dict[str, int]:
        """Planned conversations by outcome; the sum is the plan."""
        return {
            "accepted": self.status.accepted,
            "rejected": sum(self.status.rejected.values()),
            "failed": sum(self.status.failed.values()),
            "pending": self.status.pending,
        }

    @property
    def tokens(self) -> int:
        """Tokens of prompts and completions."""
        return self.status.counts.prompt_tokens + self.status.counts.completion_tokens


class PickedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation to show. `why` are clauses, the first one being the main reason."""

    id: str
    why: tuple[str, ...]


class ShownConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation on the page."""

    id: str  # id as in the shards
    arm: str  # empty without arms
    why: tuple[str, ...]  # reasons for the choice
    record: Recorded  # record of the conversation
    turns: tuple[Turn, ...]  # first turns
    words: int  # number of words of all turns
    roles: tuple[str, ...]  # speakers
    pictures: dict[int, str] = {}  # SVG, by the index of the turn

    @property
    def title(self) -> str:
        """The value of the first dimension."""
        return next(iter(self.record.scenario.values.values()), "")

    @property
    def about(self) -> list[tuple[str, str]]:
        """The scenario without its first dimension, for a table of two columns."""
        row = {
            key: describe_value(said) for key, said in self.record.scenario.as_row().items() if key != "index"
        }
        row.pop(next(iter(self.record.scenario.values), ""), None)
        layout = find_layout(self.record.scenario.values)
        for phrase, names in layout.phrases.items() if layout is not None else ():
            if row.keys() >= {*names}:  # otherwise it includes the first dimension, which is the title
                row[phrase] = " ".join([row.pop(name) for name in names])
        return [(readable_name(key).replace(".", ", ").capitalize(), said) for key, said in row.items()]


class PairSide(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a shown pair: its turns from where the sides part, and the number of `more` turns.
    `verdict` is chosen, rejected, or "" without a label."""

    name: str
    id: str
    verdict: str
    turns: tuple[Turn, ...]
    more: int


class PairExample(msgspec.Struct, frozen=True, kw_only=True):
    """A shown pair."""

    id: str  # of the pair
    why: str  # the reason for the choice
    facts: tuple[tuple[str, str], ...]  # each source's signal: name and value
    shared: int  # turns that both sides share
    before: Turn | None  # the last shared turn; None if there is none
    sides: tuple[PairSide, PairSide]  # after the shared turns


class PairsReport(msgspec.Struct, frozen=True, kw_only=True):
    """The preference pairs of a run."""

    train: int  # labelled pairs of the training side
    test: int  # labelled pairs of the test side
    left_out: dict[str, int]  # unlabelled pairs by reason
    simulated: bool  # True if no model judged
    rests: dict[str, int]  # labels by their basis
    margins: Distribution  # distribution over the labels
    bias: dict[str, Any]  # from `preferences.bias`
    probability_of: str  # see `ReportWords`
    examples: tuple[PairExample, ...]  # shown pairs

    @property
    def labelled(self) -> int:
        return self.train + self.test

    @property
    def count(self) -> int:
        return self.labelled + sum(self.left_out.values())


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the page."""

    name: str  # of the run
    edgen: str  # version of edgen
    job: str
    """The text of job.yaml."""
    inputs: dict[str, str] | None
    """The texts of templates and spaces by their names in the job; None if a page cannot contain them."""
    arms: tuple[ArmReport, ...]  # in the job's order
    missing: tuple[str, ...]
    """Arms that were not begun."""
    chosen: tuple[ShownConversation, ...]  # conversations on the page
    comparison: ComparisonResult | None  # comparison of the arms; None without one
    uncompared: str | None = None  # reason why arms are not compared
    pairs: PairsReport | str | None = None
    """A text if they cannot be read: the reason."""
    section_words: Mapping[str, tuple[str, str]] = {}
    """The family's titles and texts of sections, by name."""

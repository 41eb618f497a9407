"""A report's contents as values: collected from a run, then laid out as a page."""

from __future__ import annotations

from typing import Any

import msgspec

from edgen.core.text import readable_name, value_in_words
from edgen.core.values import Turn
from edgen.evaluation.comparison.result import ComparisonResult
from edgen.evaluation.measuring import Quality
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
    """The conversations not accepted for one reason. `status` is rejected or failed; `examples` are the
    first."""

    status: str
    reason: str
    count: int
    examples: tuple[RejectedExample, ...]


class ArmReport(msgspec.Struct, frozen=True, kw_only=True):
    """A run, or one arm of it."""

    label: str
    """The arm's name, "" without arms."""
    name: str  # the arm's, or the run's without arms
    job: dict[str, Any]
    """The resolved job."""
    status: RunStatus
    simulated: bool
    sessions: tuple[LedgerSession, ...]
    """The ledger's sessions."""
    latency: Distribution
    """Decimal logarithms of the seconds of each stored answer."""
    quality: Quality
    reasons: tuple[RejectionGroup, ...]
    guide: Any = None
    """See `ConversationProtocol.guide`."""

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


class Pick(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation to show. `why` are clauses, the first one being the main reason."""

    id: str
    why: tuple[str, ...]


class ShownConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation on the page: its record, its first turns. `arm` is "" without arms; `pictures` are SVG,
    by the place of their turn."""

    id: str
    arm: str
    why: tuple[str, ...]
    record: Recorded
    turns: tuple[Turn, ...]
    words: int
    roles: tuple[str, ...]
    pictures: dict[int, str] = {}

    @property
    def title(self) -> str:
        """The value of the first dimension."""
        return next(iter(self.record.scenario.values.values()), "")

    @property
    def about(self) -> list[tuple[str, str]]:
        """The rest of the scenario, for a table of two columns."""
        row = {
            key: value_in_words(said) for key, said in self.record.scenario.as_row().items() if key != "index"
        }
        row.pop(next(iter(self.record.scenario.values), ""), None)
        # a preference and its reaction in Education Dialogue form one phrase
        for role in ("student", "teacher"):
            if {f"{role}_preference", f"{role}_reaction"} <= row.keys():
                row[f"{role}_prefers"] = f"{row.pop(f'{role}_preference')} {row.pop(f'{role}_reaction')}"
        return [(readable_name(key).replace(".", ", ").capitalize(), said) for key, said in row.items()]


class PairSide(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a shown pair: its turns from where the two part, and the number of `more` ones. `verdict`
    is chosen, rejected, or "" without a label."""

    name: str
    id: str
    verdict: str
    turns: tuple[Turn, ...]
    more: int


class PairExample(msgspec.Struct, frozen=True, kw_only=True):
    """A shown pair. Both sides share `shared` turns, the last of which is `before`; `facts` is each source's
    signal."""

    id: str
    why: str
    facts: tuple[tuple[str, str], ...]
    shared: int
    before: Turn | None
    sides: tuple[PairSide, PairSide]


class PairsReport(msgspec.Struct, frozen=True, kw_only=True):
    """The preference pairs of a run: labelled ones by side of the split, others by reason, `rests` the basis
    of labels, and `bias` from `preferences.bias`."""

    train: int
    test: int
    left_out: dict[str, int]
    simulated: bool
    rests: dict[str, int]
    margins: Distribution
    bias: dict[str, Any]
    examples: tuple[PairExample, ...]

    @property
    def labelled(self) -> int:
        return self.train + self.test

    @property
    def count(self) -> int:
        return self.labelled + sum(self.left_out.values())


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the page."""

    name: str
    edgen: str
    job: str
    """The text of job.yaml."""
    inputs: dict[str, str] | None
    """The texts of templates and spaces by their names in the job; None if a page cannot contain them."""
    arms: tuple[ArmReport, ...]
    missing: tuple[str, ...]
    """Arms that were not begun."""
    chosen: tuple[ShownConversation, ...]
    comparison: ComparisonResult | None
    uncompared: str | None = None  # why arms are not compared
    pairs: PairsReport | str | None = None
    """A text says why they cannot be read."""

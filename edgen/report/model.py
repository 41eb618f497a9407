"""What a report holds, as values: gathered from a run, then laid out as a page."""

from __future__ import annotations

from typing import Any

import msgspec

from edgen.core.text import readable_name
from edgen.core.values import Turn
from edgen.evaluation.comparison.result import Comparison
from edgen.evaluation.measuring import Quality
from edgen.families.base import Recorded
from edgen.machines.model import Machine
from edgen.stats.distributions import Distribution
from edgen.store.ledger import RunStatus, Session


class RejectedExample(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation that was not accepted. `reply` is the last raw reply, cut to `gather.CUT` characters of
    `length`; None where nothing was answered."""

    id: str
    detail: str | None
    reply: str | None
    length: int


class RejectionGroup(msgspec.Struct, frozen=True, kw_only=True):
    """All that was not accepted for one reason. `status` is rejected or failed; `examples` are the first."""

    status: str
    reason: str
    count: int
    examples: tuple[RejectedExample, ...]


class ArmReport(msgspec.Struct, frozen=True, kw_only=True):
    """A run, or one arm of it; `label` is the arm's name, "" without arms. `job` is as resolved. `sessions` are those
    of the ledger. `latency`: decimal logarithms of the seconds that each stored answer took. `machine` guides a role."""

    label: str
    name: str  # the arm's, or the run's without arms
    job: dict[str, Any]
    status: RunStatus
    simulated: bool
    sessions: tuple[Session, ...]
    latency: Distribution
    quality: Quality
    reasons: tuple[RejectionGroup, ...]
    machine: Machine | None = None

    @property
    def outcomes(self) -> dict[str, int]:
        """Planned conversations by what became of them: they add up to all that was planned."""
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
    """A conversation that is shown. `why` are clauses, the first one what it was chosen for."""

    id: str
    why: tuple[str, ...]


class ShownConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as the page shows it: its record, its first turns. `arm` is "" without arms; `pictures` are SVG, by
    the place of the turn that they belong to."""

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
        """What the scenario holds besides, for a table of two columns."""
        row = {key: str(said) for key, said in self.record.scenario.as_row().items() if key != "index"}
        row.pop(next(iter(self.record.scenario.values), ""), None)
        for role in ("student", "teacher"):  # of Education Dialogue a preference and its reaction read as one
            if {f"{role}_preference", f"{role}_reaction"} <= row.keys():
                row[f"{role}_prefers"] = f"{row.pop(f'{role}_preference')} {row.pop(f'{role}_reaction')}"
        return [(readable_name(key).replace(".", ", ").capitalize(), said) for key, said in row.items()]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that the page is made from. `job` is the text of job.yaml, `inputs` the texts of templates
    and spaces by the names that it has for them, None where a page cannot carry them; `missing` arms that were not begun."""

    name: str
    edgen: str
    job: str
    inputs: dict[str, str] | None
    arms: tuple[ArmReport, ...]
    missing: tuple[str, ...]
    chosen: tuple[ShownConversation, ...]
    comparison: Comparison | None
    uncompared: str | None = None  # why arms are not compared

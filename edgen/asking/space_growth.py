"""Space growth: a model is asked for more values of a dimension, and a new space is made of them."""

from __future__ import annotations

import statistics
from collections.abc import Generator, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from edgen.asking.asker import FileAsker
from edgen.config import Job
from edgen.core.errors import CallError, ProviderError, TemplateError
from edgen.core.values import Reply, Request, TaskId
from edgen.core.version import __version__
from edgen.execution.rollout import advice
from edgen.execution.scheduler import ProgressCounts
from edgen.execution.session import RunSession
from edgen.planning.allowed_files import make_unlimited_reach
from edgen.prompting import Prompt, load_prompt
from edgen.protocols.space_growth import VARIABLES, Expanded, expansion
from edgen.protocols.task import Spent, Task
from edgen.space import Entry, Space, content_sha256
from edgen.space.entries import is_forbidden
from edgen.store.ledger import RunPlan


class GrowthAsker(FileAsker):
    """`wanted` new values for one dimension of a space, for the new file `out`: one unit, whose steps are the
    requests. At every start it begins anew and is fed from the ledger.

    expanded: the result, once the work has ended. model: who answered last. simulated: whether a simulator
    took part.
    """

    outcomes = ("kept", "dropped")

    def __init__(
        self, job: Job, space: Space, dimension: str, wanted: int, prompt: Prompt, out: Path
    ) -> None:
        super().__init__(job, out, "space expand")
        self.space = space
        self.dimension = dimension
        self.wanted = wanted
        self.prompt = prompt
        self.planned = wanted  # the ledger counts the one unit of work; people see counts of values
        self.expanded: Expanded | None = None
        self.model = ""
        self.simulated = False
        self._failure: CallError | None = None
        self._counts: ProgressCounts | None = None  # where kept and dropped values are counted

    def fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """Return a name for everything that shapes the new values."""
        facts = {
            "space": content_sha256(self.space),
            "dimension": self.dimension,
            "wanted": self.wanted,
            "template": self.prompt.sha256,
            "seed": self.job.seed,
        }
        return self.digest(facts, identities)

    def plan(self, under: str) -> RunPlan:
        """Return what the ledger notes as planned: one unit."""
        return RunPlan(self.job.name, under, scenarios=1, replicates=1, asked=1)

    def units(self) -> Iterator[tuple[int, int]]:
        """Yield the one unit."""
        yield 0, 0

    def list_due_units(self, session: RunSession) -> Iterator[tuple[int, TaskId]]:
        """Yield the unit, also where it has an outcome: the values come from its answers."""
        self._counts = session.counts
        return self.units()

    def task(self, index: int, task: int) -> Task:  # noqa: ARG002
        """Return the work, all of it."""

        def record(result: Expanded, spent: Spent) -> Expanded:
            self.expanded = result
            self.model = spent.by_role["default"].model if spent.by_role else ""
            self.simulated = spent.simulated
            return result

        return self.work(index, self._watch_expansion(), record)

    def check(self, session: RunSession) -> None:
        """Raise ProviderError where a request got no answer."""
        if self.expanded is not None:
            session.counts.accepted = len(self.expanded.kept)
        elif self._failure is not None:
            raise ProviderError(
                f"{advice(self._failure)} All answers are stored; run the same command again to resume."
            )

    def _watch_expansion(self) -> Generator[Request, Reply, Expanded]:
        asking = expansion(
            self.space, self.dimension, self.wanted, self.prompt, self.job.seed, tell=self._count_values
        )
        try:
            return (yield from asking)
        except CallError as failure:
            self._failure = failure
            raise

    def _count_values(self, kept: int, dropped: int) -> None:
        if (counts := self._counts) is not None:
            counts.accepted, counts.rejected["dropped"] = kept, dropped
            counts.planned = self.wanted + dropped


def build_grown_space(asker: GrowthAsker, read_from: str) -> Space:
    """Return the space with the new values after those of the dimension; its `source` says where all of it is
    from.

    A new value weighs as much as the median of the present ones, and has neither subject nor level.
    `read_from` is the name of the space's file.
    """
    space, expanded = asker.space, asker.expanded
    assert expanded is not None
    entries = space[asker.dimension].entries
    weight = statistics.median([entry.weight for entry in entries if entry.weight > 0])
    new = tuple(Entry(value, weight) for value in expanded.kept)
    return msgspec.structs.replace(
        space.replace_entries(asker.dimension, (*entries, *new)),
        name=f"{space.name.removesuffix('-expanded')}-expanded",
        source=_provenance(asker, expanded, read_from),
    )


def _provenance(asker: GrowthAsker, expanded: Expanded, read_from: str) -> str:
    space = asker.space
    dropped = ", ".join(f"{reason} {count}" for reason, count in expanded.dropped.items()) or "none"
    who = f"the model {asker.model}"
    if asker.simulated:
        who = f"a simulator ({asker.model}): they are made up, and no model wrote them"
    source = (
        f"{read_from} (content sha256 {content_sha256(space)}), with {len(expanded.kept)} more "
        f"values of {asker.dimension} after its own {len(space[asker.dimension].entries)}, by {who}. "
        f"Asked for {asker.wanted} with the template {asker.prompt.name} (sha256 {asker.prompt.sha256}), "
        f"seed {asker.job.seed}, in {expanded.answers} answers; dropped: {dropped}. "
        f"edgen {__version__}, {datetime.now(UTC).date().isoformat()}. "
        f"The source of the space before: {' '.join((space.source or 'not stated').split())}"
    )
    return "".join(" " if is_forbidden(char) else char for char in source)


def load_growth_prompt(name: str) -> Prompt:
    """Load the template that requests new values, shipped or a file.

    Raises TemplateError, also for a template that does not show the present values.
    """
    path = make_unlimited_reach().require("prompts", name, "prompt")
    prompt = load_prompt(path, VARIABLES, expects="values")
    if "values" not in prompt.variables_used:
        raise TemplateError(
            str(path),
            "it never uses `values`, the known values, so the model would repeat them.",
        )
    return prompt

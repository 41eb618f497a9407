"""Growing a space as one task: a model is asked for more values, and a new space is made.

There is one unit of work, whose steps are the requests of `protocols.expansion`; every answer is in the
ledger before it is read, so that work that was cut off goes on and nothing is asked twice.
"""

from __future__ import annotations

import statistics
from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from edgen.config import CallSettings, Job
from edgen.core.digest import fingerprint
from edgen.core.errors import CallError, ProviderError, TemplateError
from edgen.core.values import Reply, Request
from edgen.core.version import __version__
from edgen.execution.rollout import advice
from edgen.execution.scheduler import ProgressCounts
from edgen.execution.session import Session
from edgen.planning.allowed_files import unlimited
from edgen.prompting import Prompt, load_prompt
from edgen.protocols.space_growth import VARIABLES, Expanded, expansion
from edgen.protocols.task import Settled, Spent, Task, Tasks
from edgen.space import Entry, Space, content_sha256
from edgen.space.text_rules import is_forbidden
from edgen.store.ledger import RunPlan

_encode = msgspec.json.Encoder().encode


class SpaceGrowth(Tasks):
    """`wanted` new values for one dimension of a space. `expanded` is what came of it, once it has ended;
    `model` who answered last, `simulated` whether a simulator had a part in it."""

    def __init__(self, job: Job, space: Space, dimension: str, wanted: int, prompt: Prompt) -> None:
        self.job = job
        self.call_settings = CallSettings.of(job)
        self.space = space
        self.dimension = dimension
        self.wanted = wanted
        self.prompt = prompt
        self.expanded: Expanded | None = None
        self.failure: CallError | None = None
        self.model = ""
        self.simulated = False
        self.counts: ProgressCounts | None = None  # where it is counted how many values were kept and dropped

    def task(self, index: int, replicate: int) -> Task:  # noqa: ARG002 - there is one
        """The work, all of it."""
        return Task(self._watched(), 0, self._settle)

    def fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """A name, 16 hex digits, for everything that shapes the new values."""
        facts = {
            "space": content_sha256(self.space),
            "dimension": self.dimension,
            "wanted": self.wanted,
            "template": self.prompt.sha256,
            "seed": self.job.seed,
            "identities": {role: dict(identity) for role, identity in identities.items()},
            "edgen": __version__,
        }
        return fingerprint(facts)

    def _watched(self) -> Generator[Request, Reply, Expanded]:
        asking = expansion(
            self.space, self.dimension, self.wanted, self.prompt, self.job.seed, tell=self._count_values
        )
        try:
            return (yield from asking)
        except CallError as failure:
            self.failure = failure
            raise

    def _count_values(self, kept: int, dropped: int) -> None:
        if (counts := self.counts) is not None:
            counts.accepted, counts.rejected["dropped"] = kept, dropped
            counts.planned = self.wanted + dropped

    def _settle(self, result: Expanded, spent: Spent) -> Settled:
        self.expanded = result
        self.model = spent.by_role["default"].model if spent.by_role else ""
        self.simulated = spent.simulated
        return Settled.accepted(_encode(result))


async def grow_space(expanding: SpaceGrowth, session: Session) -> None:
    """Ask until there is enough, or nothing new comes. Raises what stopped it, ProviderError where a
    request got no answer. Answers that the ledger has are not asked for again."""
    async with session.record():
        session.announce(RunPlan(expanding.job.name, session.fingerprint, scenarios=1, replicates=1, asked=1))
        # The ledger counts the one unit of work; what people see counts values.
        expanding.counts = session.counts
        session.counts.planned = expanding.wanted
        await session.scheduler.run(iter([(0, 0)]))
        if expanding.expanded is not None:
            session.counts.accepted = len(expanding.expanded.kept)
        await session.ledger.flush()
        if expanding.expanded is None and expanding.failure is not None:
            raise ProviderError(
                f"{advice(expanding.failure)} What was answered before is stored; start the same command again "
                "and it goes on where it stopped."
            )


def build_grown_space(expanding: SpaceGrowth, read_from: str) -> Space:
    """The space with the new values behind those of the dimension, its `source` saying where all of it is from.

    A new value weighs as much as the median of those there, and has neither subject nor level: nobody
    gave it one. `read_from` is what the file of the space is called.
    """
    space, expanded = expanding.space, expanding.expanded
    assert expanded is not None
    entries = space[expanding.dimension].entries
    weight = statistics.median([entry.weight for entry in entries if entry.weight > 0])
    new = tuple(Entry(value, weight) for value in expanded.kept)
    return msgspec.structs.replace(
        space.replace_entries(expanding.dimension, (*entries, *new)),
        name=f"{space.name.removesuffix('-expanded')}-expanded",
        source=_provenance(expanding, expanded, read_from),
    )


def _provenance(expanding: SpaceGrowth, expanded: Expanded, read_from: str) -> str:
    space = expanding.space
    dropped = ", ".join(f"{reason} {count}" for reason, count in expanded.dropped.items()) or "none"
    who = f"the model {expanding.model}"
    if expanding.simulated:
        who = f"a simulator ({expanding.model}): they are made up, and no model wrote them"
    source = (
        f"{read_from} (content sha256 {content_sha256(space)}), with {len(expanded.kept)} more "
        f"values of {expanding.dimension} behind its own {len(space[expanding.dimension].entries)}, by {who}. "
        f"Asked for {expanding.wanted} with the template {expanding.prompt.name} (sha256 {expanding.prompt.sha256}), "
        f"seed {expanding.job.seed}, in {expanded.answers} answers; dropped: {dropped}. "
        f"edgen {__version__}, {datetime.now(UTC).date().isoformat()}. "
        f"The source of the space before: {' '.join((space.source or 'not stated').split())}"
    )
    return "".join(" " if is_forbidden(char) else char for char in source)


def load_growth_prompt(name: str) -> Prompt:
    """The template that asks for new values, shipped or a file. Raises TemplateError, as where it does not
    show what is there already."""
    path = unlimited().require("prompts", name, "prompt")
    prompt = load_prompt(path, VARIABLES, expects="values")
    if "values" not in prompt.variables_used:
        raise TemplateError(
            str(path),
            "it does not show what is there already: values is never used, so much would come again.",
        )
    return prompt

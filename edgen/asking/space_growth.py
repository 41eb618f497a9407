"""Space growth: a model writes more values of a dimension, and a new space is made of them."""

from __future__ import annotations

import statistics
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from edgen.asking.asker import FileAsker
from edgen.config import Job
from edgen.core.errors import CallError, ProviderError, TemplateError, UsageError
from edgen.core.files import remove_leftovers
from edgen.core.text import is_forbidden
from edgen.core.values import Reply, Request, TaskId
from edgen.core.version import __version__
from edgen.execution.failure_texts import add_advice
from edgen.execution.progress import ProgressCounts
from edgen.execution.session import RunSession
from edgen.prompting import Prompt
from edgen.protocols.parts import Spent
from edgen.protocols.space_growth import BARREN, BATCH, VARIABLES, NewValues, ask_for_values
from edgen.space import Entry, Space, digest_content


class GrowthAsker(FileAsker[None, NewValues]):
    """An asker for `wanted` new values of a space's dimension, for the new file `out`. It has one unit. Its
    steps are the requests, each of which depends on the answers before it.

    expanded: the result, once the work has ended. model: the model of the last answer. simulated: whether a
    simulator took part.
    """

    work, made_up = "space-expand", "its values are made up"
    template, variables, expects, key = "space_expand", VARIABLES, "values", "prompt"
    nouns = "values"
    outcomes = ("kept", "dropped")
    begins_anew = True  # the record does not hold all of the result

    @classmethod
    def load_prompt(cls, named: str | None) -> Prompt:
        """Read the template. Raises TemplateError, also if the template does not use `values`."""
        prompt = super().load_prompt(named)
        if "values" not in prompt.variables_used:
            raise TemplateError(
                prompt.source, "it never uses `values`, the known values, so the model would repeat them."
            )
        return prompt

    @classmethod
    def require(cls, out: Path) -> None:
        """Raise UsageError if the new file cannot be made."""
        remove_leftovers(out)
        if out.exists() or out.is_symlink():
            raise UsageError(f"-o {out}: this already exists and is not overwritten; choose another name.")
        if not out.parent.is_dir():
            raise UsageError(f"-o {out}: there is no folder {out.parent}; make it first.")

    def __init__(
        self, job: Job, prompt: Prompt, out: Path, *, space: Space, dimension: str, wanted: int
    ) -> None:
        super().__init__(job, prompt, out, "space expand")
        self.space = space
        self.dimension = dimension
        self.wanted = wanted
        self.asks = 1  # an unreadable answer brings no values, and the next request follows anyway
        self.scenarios = 1
        self.planned = wanted  # the ledger counts one unit; the display counts values
        self.shaping = {
            "space": digest_content(space),
            "dimension": dimension,
            "wanted": wanted,
            "template": prompt.sha256,
            "seed": job.seed,
        }
        self.expanded: NewValues | None = None
        self.model = ""
        self.simulated = False
        self._failure: CallError | None = None
        self._counts: ProgressCounts | None = None  # counts of kept and dropped values

    def list_units(self) -> Iterator[tuple[int, int]]:
        """Yield the one unit."""
        yield 0, 0

    def read_unit(self, index: int, task: int) -> None:
        """Return nothing: the asker has the space."""

    def count_calls(self, index: int, task: int) -> tuple[int, int]:  # noqa: ARG002
        """Return the expected requests, if all values are new, and the most: BARREN for each value."""
        return -(-self.wanted // BATCH), self.wanted * BARREN

    def list_due_units(self, session: RunSession) -> Iterator[tuple[int, TaskId]]:
        """Yield the unit, and count its values from now on."""
        self._counts = session.counts
        return super().list_due_units(session)

    def ask(self, unit: None) -> Generator[Request, Reply, NewValues]:  # noqa: ARG002
        """Ask for values until there are enough."""
        space, dimension, seed = self.space, self.dimension, self.job.seed
        try:
            return (
                yield from ask_for_values(
                    space, dimension, self.wanted, self.prompt, seed, on_answer=self._count_values
                )
            )
        except CallError as failure:
            self._failure = failure
            raise

    def keep(self, answer: NewValues, unit: None, spent: Spent) -> NewValues:  # noqa: ARG002
        """Keep the result, and return it."""
        self.expanded = answer
        self.model = spent.by_role["default"].model if spent.by_role else ""
        self.simulated = spent.simulated
        return answer

    def check(self, session: RunSession) -> None:
        """Raise ProviderError if a request failed."""
        if self.expanded is not None:
            session.counts.accepted = len(self.expanded.kept)
        elif self._failure is not None:
            raise ProviderError(
                f"{add_advice(self._failure)} All answers are stored; run the same command again to resume."
            )

    def _count_values(self, kept: int, dropped: int) -> None:
        if (counts := self._counts) is not None:
            counts.accepted, counts.rejected["dropped"] = kept, dropped
            counts.planned = self.wanted + dropped


def build_grown_space(asker: GrowthAsker, read_from: str) -> Space:
    """Return the space with the new values after the dimension's own. Its `source` states the origin of all
    values.

    A new value gets the median weight of the present values, and neither subject nor level. `read_from` is
    the name of the space's file.
    """
    space, expanded = asker.space, asker.expanded
    assert expanded is not None
    entries = space[asker.dimension].entries
    weight = statistics.median([entry.weight for entry in entries if entry.weight > 0])
    new = tuple(Entry(value, weight) for value in expanded.kept)
    return msgspec.structs.replace(
        space.replace_entries(asker.dimension, (*entries, *new)),
        name=f"{space.name.removesuffix('-expanded')}-expanded",
        source=_describe_provenance(asker, expanded, read_from),
    )


def _describe_provenance(asker: GrowthAsker, expanded: NewValues, read_from: str) -> str:
    space = asker.space
    dropped = ", ".join(f"{reason} {count}" for reason, count in expanded.dropped.items()) or "none"
    who = f"the model {asker.model}"
    if asker.simulated:
        who = f"a simulator ({asker.model}): they are made up, and no model wrote them"
    source = (
        f"{read_from} (content sha256 {digest_content(space)}), with {len(expanded.kept)} more "
        f"values of {asker.dimension} after its own {len(space[asker.dimension].entries)}, by {who}. "
        f"Asked for {asker.wanted} with the template {asker.prompt.name} (sha256 {asker.prompt.sha256}), "
        f"seed {asker.job.seed}, in {expanded.answers} answers; dropped: {dropped}. "
        f"edgen {__version__}, {datetime.now(UTC).date().isoformat()}. "
        f"The source of the space before: {' '.join((space.source or 'not stated').split())}"
    )
    return "".join(" " if is_forbidden(char) else char for char in source)

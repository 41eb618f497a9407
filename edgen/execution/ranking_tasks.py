"""The examples of a response-selection set as tasks: a model ranks the candidates of each, behind the order that BM25 gives.

A task is an example, by its place in the file. Its record is the example's entry of a submission, with what could not be read
of the answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from edgen.config import CallSettings, Job
from edgen.core.digest import fingerprint, sha256
from edgen.core.errors import TemplateError
from edgen.core.values import Address, Turn
from edgen.core.version import __version__
from edgen.execution.session import Session
from edgen.planning.allowed_files import unlimited
from edgen.prompting import Prompt, load_prompt
from edgen.protocols.base import Rules
from edgen.protocols.ranking import SHOWN, STEP, VARIABLES, WINDOW, Ranked, rank_by_windows
from edgen.protocols.task import Settled, Spent, Task, Tasks
from edgen.reading.text.characters import replace_surrogates
from edgen.retrieval.baseline import Example, Frequencies, entry_of, first_order, read_examples
from edgen.retrieval.truth import NONE
from edgen.store.ledger import Outcomes, RunPlan

FIRST = "bm25"  # the order that a model begins with
_SAYS_NONE = "(None of the other candidates is what was said next.)"
_encode = msgspec.json.Encoder().encode


class RankedExample(msgspec.Struct, frozen=True, kw_only=True):
    """What a ledger keeps of an example: its entry, and see Ranked."""

    entry: msgspec.Raw
    windows: int
    unread: int = 0
    unknown: int = 0
    repeated: int = 0
    missing: int = 0
    model: str = ""


_ranked = msgspec.json.Decoder(RankedExample).decode


class RankingTasks(Tasks):
    """The examples in `entries`, which were read from `source`, to be ranked by the backend of `job`. `seed` decides between
    candidates that are equally good at first. `none`: that none is right is a candidate too."""

    def __init__(
        self,
        job: Job,
        entries: Sequence[msgspec.Raw],
        source: str,
        prompt: Prompt,
        *,
        seed: int = 0,
        none: bool = False,
    ) -> None:
        self.job = job
        self.call_settings = CallSettings.of(job)
        self.prompt = prompt
        self._entries, self._source = entries, source
        self._seed, self._none = seed, none
        self._rules = Rules(asks=job.asks, seed=job.seed)
        self._frequencies = Frequencies()
        for example in read_examples(entries, source):
            self._frequencies.see(example)

    @property
    def planned(self) -> int:
        return len(self._entries)

    def fingerprint(self, identities: Mapping[str, Mapping[str, Any]]) -> str:
        """A name, 16 hex digits, for all that shapes the rankings."""
        facts = {
            "examples": sha256(b"\n".join(bytes(entry) for entry in self._entries)),
            "template": self.prompt.sha256,
            "seeds": (self._seed, self.job.seed),
            "asks": self.job.asks,
            "none": self._none,
            "windows": (WINDOW, STEP, FIRST),
            "identities": {role: dict(identity) for role, identity in identities.items()},
            "edgen": __version__,
        }
        return fingerprint(facts)

    def task(self, index: int, task: int) -> Task:
        """The work on one example."""
        example = next(read_examples(self._entries[index : index + 1], self._source))
        order = [place for place, _ in first_order(example, self._frequencies, FIRST, self._seed)]
        if self._none and NONE not in dict(example.candidates):
            candidates = [*example.candidates, (NONE, _SAYS_NONE)]
            example = Example(example.id, example.turns, candidates)
            order.append(len(order))
        protocol = rank_by_windows(
            [Turn(turn.role, replace_surrogates(turn.text, [])) for turn in example.turns],
            [replace_surrogates(text, []) for _, text in example.candidates],
            order,
            Address(index, task),
            self.prompt,
            self._rules,
        )
        return Task(protocol, 0, lambda ranked, spent: _settle(example, ranked, spent))

    async def work_through(self, session: Session) -> None:
        """Have ranked what is not ranked yet. Raises what stopped it."""
        async with session.record():
            session.announce(
                RunPlan(
                    name=self.job.name,
                    fingerprint=session.fingerprint,
                    scenarios=self.planned,
                    replicates=1,
                    asked=self.planned,
                )
            )
            units = ((index, 0) for index in range(self.planned))
            await session.scheduler.run(session.pending(units, 0, self.planned))
            await session.ledger.flush()


def _settle(example: Example, ranked: Ranked, spent: Spent) -> Settled:
    """An example of which nothing was read has no ranking: its order would be another one's."""
    if ranked.detail is not None and ranked.unread == ranked.windows:
        return Settled.rejected(ranked.detail)
    count = len(ranked.places)
    entry = entry_of(
        example.id,
        [
            (example.candidates[place][0], round(1 - before / count, 6))
            for before, place in enumerate(ranked.places)
        ],
    )
    kept = RankedExample(
        entry=msgspec.Raw(entry),
        windows=ranked.windows,
        unread=ranked.unread,
        unknown=ranked.unknown,
        repeated=ranked.repeated,
        missing=ranked.missing,
        model=next(iter(spent.by_role.values())).model if spent.by_role else "",
    )
    return Settled.accepted(_encode(kept))


def ranked_examples(outcomes: Outcomes) -> Iterator[RankedExample]:
    """What was ranked, in the order of the examples."""
    return (_ranked(data) for *_, data in outcomes.records())


def load_ranking_prompt(name: str) -> Prompt:
    """The template that asks for a ranking, shipped or a file. Raises TemplateError, as where it does not show what is to be
    ranked."""
    path = unlimited().require("prompts", name, "--prompt")
    prompt = load_prompt(path, VARIABLES, expects="ranking")
    if missing := [one for one in SHOWN if one not in prompt.variables_used]:
        raise TemplateError(
            str(path), f"it does not show what is to be ranked: {', '.join(missing)} is never used."
        )
    return prompt

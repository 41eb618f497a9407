"""The examples of a response-selection set as tasks: a model ranks the candidates of each, from BM25's order.

A task is an example, by its place in the file. Its record is the example's entry of a submission, with counts
of the unreadable parts of the answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgen.asking.asker import FileAsker
from edgen.core.digest import compute_sha256
from edgen.domains.retrieval.baseline import (
    Frequencies,
    RankingExample,
    make_entry,
    rank_candidates,
    read_examples,
)
from edgen.domains.retrieval.ranking_protocol import (
    SHOWN,
    STEP,
    TEMPLATE,
    VARIABLES,
    WINDOW,
    Ranked,
    list_windows,
    rank_by_windows,
)
from edgen.domains.retrieval.submissions.truth import NONE
from edgen.execution.progress import CallCounts, Tokens, UsageCounts
from edgen.plugin import Address, Job, Rejection, Reply, Request, Turn
from edgen.plugin.answers import replace_surrogates
from edgen.plugin.errors import ShortError, TemplateError
from edgen.plugin.files import write_lines
from edgen.plugin.texts import describe_counts
from edgen.prompting import Prompt
from edgen.protocols.parts import Spent
from edgen.store.ledger import LedgerReader

FIRST = "bm25"  # the order that a model starts from
_SAYS_NONE = "(None of the other candidates is what was said next.)"


class RankedUnit(NamedTuple):
    """An example to rank."""

    address: Address
    example: RankingExample
    order: Sequence[int]  # places of its candidates in the first order, the best first


class RankedExample(msgspec.Struct, frozen=True, kw_only=True):
    """A ledger's record of an example."""

    entry: msgspec.Raw  # the example's entry of a submission
    windows: int  # see Ranked, as for the next four
    unread: int = 0  # windows that kept their order
    unknown: int = 0  # numbers without a candidate
    repeated: int = 0  # repeated numbers
    missing: int = 0  # candidates that the model left out
    model: str = ""  # the answering model


_ranked = msgspec.json.Decoder(RankedExample).decode
_COUNTED = ("windows", "unread", "unknown", "repeated", "missing")


class ModelRanking(msgspec.Struct, frozen=True, kw_only=True):
    """A model's rankings of the examples."""

    ranked: int  # examples with a ranking
    rejected: dict[str, int]  # examples without a ranking, by reason
    failed: dict[str, int]  # examples without a ranking, by reason
    windows: int  # lists that the model put in order
    unread: int  # windows that kept their order
    unknown: int  # dropped numbers without a candidate
    repeated: int  # dropped repeated numbers
    missing: int  # candidates that the model left out
    model: str  # the answering model
    simulated: bool  # no model answered
    ledger: str  # path of the ledger
    calls: CallCounts  # counts of calls
    tokens: Tokens  # of prompts and answers
    cost_usd: float | None  # US dollars; None without a price

    def require_all(self) -> None:
        """Raise ShortError if an example has no ranking."""
        if self.failed:
            raise ShortError(
                "Examples without a ranking because a call failed: "
                f"{describe_counts(self.failed)}. The same command requests them again."
            )
        if self.rejected:
            raise ShortError(
                "Examples without a ranking because no answer could be read: "
                f"{describe_counts(self.rejected)}. Another backend, or --set asks=3, may help."
            )


class RankingAsker(FileAsker[RankedUnit, Ranked]):
    """The ranking of the examples in `entries` by the backend of `job`, for the file `out`. The entries were
    read from `source`.

    seed: decides between candidates with equal scores in the first order. none: "no candidate is right" is a
    candidate, too.
    """

    work, made_up = "baseline", "it orders by shared words"
    template, variables, expects = TEMPLATE, VARIABLES, "ranking"
    nouns = "examples"
    outcomes = ("ranked", "unread")

    @classmethod
    def load_prompt(cls, named: str | None) -> Prompt:
        """Read the template. Raises TemplateError for an invalid one, or one that does not show the
        conversation or the candidates."""
        prompt = super().load_prompt(named)
        if missing := [one for one in SHOWN if one not in prompt.variables_used]:
            said = f"it does not show what is to be ranked: {', '.join(missing)} is never used."
            raise TemplateError(prompt.source, said)
        return prompt

    def __init__(
        self,
        job: Job,
        prompt: Prompt,
        out: Path,
        *,
        entries: Sequence[msgspec.Raw],
        source: str,
        seed: int = 0,
        none: bool = False,
    ) -> None:
        super().__init__(job, prompt, out, "baseline")
        self._entries, self._source = entries, source
        self._seed, self._none = seed, none
        self._frequencies = Frequencies()
        for example in read_examples(entries, source):
            self._frequencies.see(example)
        self.count()
        self.shaping = {
            "examples": compute_sha256(b"\n".join(bytes(entry) for entry in entries)),
            "template": prompt.sha256,
            "seeds": (seed, job.seed),
            "asks": job.asks,
            "none": none,
            "windows": (WINDOW, STEP, FIRST),
        }

    def list_units(self) -> Iterator[tuple[int, int]]:
        """Yield every example, by its place in the file."""
        return ((index, 0) for index in range(len(self._entries)))

    def count_calls(self, index: int, task: int) -> tuple[int, int]:
        """Return the number of an example's windows."""
        count = sum(1 for _ in list_windows(len(self._find_example(index).candidates) + self._none))
        return count, count

    def read_unit(self, index: int, task: int) -> RankedUnit:
        """Return an example, and the first order of its candidates."""
        example = self._find_example(index)
        order = [place for place, _ in rank_candidates(example, self._frequencies, FIRST, self._seed)]
        if self._none and NONE not in dict(example.candidates):
            candidates = [*example.candidates, (NONE, _SAYS_NONE)]
            example = RankingExample(example.id, example.turns, candidates)
            order.append(len(order))
        return RankedUnit(Address(index, task), example, order)

    def ask(self, unit: RankedUnit) -> Generator[Request, Reply, Ranked | Rejection]:
        """Ask for the order, window by window. An example without a readable answer is rejected: its order
        would not be the model's."""
        example = unit.example
        ranked = yield from rank_by_windows(
            [Turn(turn.role, replace_surrogates(turn.text, [])) for turn in example.turns],
            [replace_surrogates(text, []) for _, text in example.candidates],
            unit.order,
            unit.address,
            self.prompt,
            self.rules,
        )
        if ranked.detail is not None and ranked.unread == ranked.windows:
            return ranked.detail
        return ranked

    def keep(self, answer: Ranked, unit: RankedUnit, spent: Spent) -> RankedExample:
        """Return the example's entry of a submission, with counts of the unreadable parts of the answers."""
        count, candidates = len(answer.places), unit.example.candidates
        entry = make_entry(
            unit.example.id,
            [
                (candidates[place][0], round(1 - before / count, 6))
                for before, place in enumerate(answer.places)
            ],
        )
        return RankedExample(
            entry=msgspec.Raw(entry),
            **{name: getattr(answer, name) for name in _COUNTED},
            model=next(iter(spent.by_role.values())).model if spent.by_role else "",
        )

    def _find_example(self, index: int) -> RankingExample:
        return next(read_examples(self._entries[index : index + 1], self._source))


def write_ranking(asker: RankingAsker, ledger: Path) -> ModelRanking:
    """Write the file of the ranked examples. Raises ShortError if there are none."""
    with LedgerReader(ledger) as kept:
        status = kept.status
        if not status.accepted:
            reasons = describe_counts({**status.rejected, **status.failed})
            raise ShortError(f"None of the {asker.planned:,} examples was ranked ({reasons}).")
        counts, models = Counter[str](), set[str]()

        def iterate_entries() -> Iterator[bytes]:
            for *_, data in kept.iterate_records():
                one = _ranked(data)
                counts.update({name: getattr(one, name) for name in _COUNTED})
                models.add(one.model)
                yield bytes(one.entry)

        write_lines(asker.out, as_list(iterate_entries()))
        return ModelRanking(
            ranked=status.accepted,
            rejected=dict(status.rejected),
            failed=dict(status.failed),
            **dict[str, Any](counts),
            model=", ".join(sorted(models)),
            simulated=kept.simulated,
            ledger=str(ledger),
            **msgspec.structs.asdict(UsageCounts.of(status.counts)),
        )


def as_list(entries: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a JSON list, one for each entry. There must be at least one."""
    before = b"["
    for entry in entries:
        yield before
        before = entry + b","
    yield before.removesuffix(b",")
    yield b"]"

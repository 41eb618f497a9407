"""Evidence of a row of a preference format: source and subject of its label, and simulated parts.

A judge compares whole conversations or single responses; a card must state which, and whether the judge was
simulated. All statements are about exported rows only.

`list_credit_notes` quotes how often each credit method finds the better of two turns, from
credit_figures.json. `python -m bench credit` measures the figures on planted worths and rewrites the file.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import UNSET

from edgen.core.pair import OF_RESPONSES, Compare, Label, OracleSignal, Pair, RolloutSignal, Source
from edgen.core.text import format_interval
from edgen.store.run_parts import ComparedPair

Level = Literal["conversation", "turn"]
Part = Literal["conversations", "labels"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of a preference."""

    by: Source | None  # the source; None if a source has only ties
    judge: str | None  # a judge's identity; None for other sources
    model: str | None  # name of the judge's model; None for other sources
    compare: Compare | None  # texts that a judge or people compared; None for other sources
    simulated: frozenset[Part]  # simulated parts
    rollouts: int | None = None  # rollouts per response; None if the preference uses none

    def __str__(self) -> str:
        compare = None if self.compare is None else f"compare={self.compare}"
        rollouts = None if self.rollouts is None else f"rollouts={self.rollouts}"
        words = [self.by or "a source without labels", self.judge, self.model, compare, rollouts]
        return " · ".join(word for word in words if word)


def evidence_of(compared: ComparedPair, label: Label | None) -> Evidence:
    """Return the evidence of a pair. `label` is the pair's own; without one, any label of the same run."""
    by = None if label is None else label.by
    k = None if label is None or label.k is UNSET else label.k
    signal = find_label_signal(compared.pair, label) if by in (None, "oracle") or k is not None else None
    simulated = _find_simulated_parts(compared, by, signal)
    if isinstance(signal, RolloutSignal):
        compare: Compare | None = None if signal.judge is None else "conversation"
        return Evidence(by, signal.judge, signal.model, compare, simulated, k)
    if by == "human" and compared.pair.a.response is not UNSET:
        return Evidence(by, None, None, "response", simulated, k)
    said = signal or label
    if said is None:
        return Evidence(by, None, None, None, simulated, k)
    return Evidence(by, said.judge, None if signal is None else signal.model, said.compare, simulated, k)


def find_label_signal(pair: Pair, label: Label | None) -> OracleSignal | RolloutSignal | None:
    """Return the signal from which `label` was made, if it is a judge's or uses rollouts; without a label,
    the only judge's signal."""
    if label is not None and label.k is not UNSET:
        found = () if pair.signals.rollouts is UNSET else pair.signals.rollouts
        return next((signal for signal in found if signal.by == label.by), None)
    heard = pair.signals.oracle
    if label is None:
        return heard[0] if len(heard) == 1 else None
    return next((signal for signal in heard if signal.judge == label.judge), None)


def _find_simulated_parts(
    compared: ComparedPair, by: Source | None, signal: OracleSignal | RolloutSignal | None
) -> frozenset[Part]:
    """Return the simulated parts. A simulated judge counts only if it gave the labels: people's labels are
    their own, and a probability is the conversations' own."""
    parts: set[Part] = set()
    conversations = compared.a.simulated or compared.b.simulated
    if conversations:
        parts.add("conversations")
    own = by == "probability" or by in OF_RESPONSES  # the labels are the run's own
    if (signal is not None and signal.simulated) or (own and conversations):
        parts.add("labels")
    return frozenset(parts)


def list_simulated_parts(found: Iterable[Evidence], *, of_run: bool) -> tuple[Part, ...]:
    """Return the simulated parts of an export. `of_run`: the run is simulated."""
    parts: set[Part] = set().union(*(one.simulated for one in found))
    if of_run:
        parts.add("conversations")
    return tuple(sorted(parts))


# The subject of labels on pairs of responses to one turn.
_OF_MARKS: Mapping[Source, str] = {
    "flag": (
        "Both responses answer the same turn, after the same words. The {hearer} called the rejected one "
        "nonsense. The chosen one is another response to that turn, which the {hearer} did not see: nobody "
        "rated it as good."
    ),
    "judged": (
        "Both responses answer the same turn, after the same words. A judge compared all responses to that "
        "turn when the conversation was made: it found the chosen one best and the rejected one worst. It "
        "did not see the later turns."
    ),
}


def describe_judged(level: Level | None, found: Mapping[Evidence, int], hearer: str) -> str | None:
    """Return the sentence that compares the rows' content with the labels' subject; None without labels.
    `hearer`: the family's word for the role that hears responses."""
    if level is not None and (often := next((one.rollouts for one in found if one.rollouts), None)):
        return _describe_rollouts(level, often)
    if marks := {one.by for one in found if one.by is not None} & OF_RESPONSES:
        return " ".join(_OF_MARKS[by].format(hearer=hearer) for by in sorted(marks))
    who = "People" if {one.by for one in found} == {"human"} else "The judge"
    rows: dict[Compare, int] = {"conversation": 0, "response": 0}
    for one, count in found.items():
        if one.by is not None or one.compare is not None:
            rows[one.compare or "conversation"] += count
    if level is None or not any(rows.values()):
        return None
    if level == "turn":
        return _of_turns(rows, who)
    return _of_conversations(rows, who)


def _describe_rollouts(level: Level, often: int) -> str:
    """Describe the rollouts. All labels of a run's pairs have the same basis."""
    times = "once" if often == 1 else f"{often} times"
    rest = (
        "The labels come from rollouts: after each of the two turns at which a pair parts, the conversation "
        f"was continued {times}, and the mean over the continuations counts."
    )
    if level == "turn":
        return f"{rest} A row holds that turn."
    return (
        f"**{rest}** Such a label says which side has the better turn there, and nothing about the later "
        "turns, which the row holds too."
    )


def _of_turns(rows: Mapping[Compare, int], who: str) -> str:
    if not rows["response"]:
        return "The labels were given to whole conversations; a row holds the turn at which they part."
    if not rows["conversation"]:
        return (
            f"{who} compared single responses, at the turn where the two conversations part, and a row holds "
            "that turn. The later turns were not shown."
        )
    return (
        f"The labels of {rows['conversation']} rows were given to whole conversations, those of "
        f"{rows['response']} to single responses; a row holds the turn at which the conversations part."
    )


def _of_conversations(rows: Mapping[Compare, int], who: str) -> str:
    if not rows["response"]:
        return "The labels were given to whole conversations."
    which = f" in {rows['response']} of {sum(rows.values())} rows" if rows["conversation"] else ""
    return (
        f"**{who} compared single responses{which}, not whole conversations.** Such a label says which side "
        "has the better response at the turn where the two part, and nothing about the later turns, which "
        "the row holds too."
    )


FILE = Path(__file__).with_name("credit_figures.json")
ALL, CUT = "all", "min_turns_left 1"  # cases that a note names


class EvidenceCase(msgspec.Struct, frozen=True, kw_only=True):
    """Labels of one kind of pairs, by the number of turns after they part."""

    where: str  # the number of turns; or `all`, or `min_turns_left N`
    n: int  # number of labels
    right: float  # share whose preferred turn is truly better
    low: float  # lower end of the 95% interval, which allows for correlated pairs of a scenario
    high: float  # upper end of the interval
    alike: int  # labels of pairs without a better turn, which are never right


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One credit method: its source `by`, `k` rollouts of each response (None: none), `calls` per label."""

    credit: Literal["whole", "response", "rollouts"]
    by: Literal["oracle", "probability"]
    k: int | None
    calls: float
    cases: tuple[EvidenceCase, ...]

    @property
    def name(self) -> str:
        """The method's name in a table."""
        by = "judge" if self.by == "oracle" else "probability"
        return f"{self.credit}, by {by}" + ("" if self.k is None else f", k = {self.k}")

    def find_case(self, where: str) -> EvidenceCase:
        """Return the case of that name."""
        return next(case for case in self.cases if case.where == where)


class CreditFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one measurement."""

    date: str  # date of the measurement, YYYY-MM-DD
    edgen: str  # version of edgen
    planted: int  # the seed from which worths were planted
    scenarios: int  # number of measured scenarios
    conversations: int  # number of measured conversations
    figures: tuple[Figure, ...]  # one for each way of labelling


@functools.cache
def read_figures() -> CreditFigures:
    """Return the shipped figures."""
    return msgspec.json.decode(FILE.read_bytes(), type=CreditFigures)


def format_share(case: EvidenceCase) -> str:
    """Format the share of labels whose preferred turn is truly better, with its interval."""
    return f"{case.right:.0%}" + format_interval(case.low, case.high, "{:.0%}".format)


def warn_of_credit(level: Level | None, evidence: Mapping[Evidence, int]) -> Iterator[str]:
    """Yield a warning for rows by turn whose labels were given to whole conversations."""
    rows = sum(
        count
        for one, count in evidence.items()
        if one.by is not None
        and one.by not in OF_RESPONSES
        and one.rollouts is None
        and one.compare != "response"
    )
    if level != "turn" or not rows:
        return
    whole, response = (_find_figure(credit).find_case(ALL).right for credit in ("whole", "response"))
    yield (
        f"{rows:,} of {sum(evidence.values()):,} rows hold one turn, and their labels were given to whole "
        f"conversations. On planted truth such a label names the better turn in {whole:.0%} of pairs, and a "
        f"judge of the two responses in {response:.0%} (`edgen pairs --signal oracle --credit response`). "
        "Formats of whole conversations (mtpo, refuel, trl-conversation) take such labels directly."
    )


def _find_figure(credit: str) -> Figure:
    """Return the figure of a credit method by a judge."""
    return next(one for one in read_figures().figures if one.credit == credit and one.by == "oracle")


def list_credit_notes(level: Level | None, evidence: Iterable[Evidence]) -> Iterator[str]:
    """Yield the card's notes on the credit of rows by turn, one line per method; empty if no row has a label
    by a judge or a probability."""
    if level != "turn" or not any(one.by in ("oracle", "probability") for one in evidence):
        return
    known = read_figures()
    yield (
        "A label of one turn is right only as far as its evidence separates that turn from the others "
        f"(`edgen pairs --credit`). On planted truth, {known.scenarios} simulated scenarios in which each turn's "
        f"worth is known ({known.date}), the preferred turn was truly the better one in these shares of the "
        "labelled pairs, with 95% intervals. The figures compare the methods; they do not measure the "
        "labels of this data:"
    )
    for figure in known.figures:
        every, cut = figure.find_case(ALL), figure.find_case(CUT)
        yield (
            f"{figure.name}: {format_share(every)}; {format_share(cut)} with --min-turns-left 1; {figure.calls:.1f} "
            "calls a label"
        )

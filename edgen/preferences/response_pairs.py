"""Pairs of responses to one turn, by marks in the run's own records and by people's votes, without a model.

Several responses to a turn share all previous turns exactly. A response that its hearer called nonsense is
paired with each other response to that turn (`flag`); the hearer did not see these. The response that a judge
of the run found best is paired with the worst one (`judged`). Both marks are in a turn's `data`: `nonsense`,
and `judged` with "best" or "worst".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec

from edgen.core.pair import (
    Candidate,
    JudgeDirected,
    MarkSignal,
    Pair,
    ProbabilitySignal,
    ResponsePlace,
    Side,
    Signals,
    cut_at_response,
    digest_texts,
)
from edgen.core.values import Turn
from edgen.core.version import __version__
from edgen.preferences.judge_directed import find_first_directed
from edgen.preferences.signals import make_human_signal
from edgen.store.run_reader import RunReader
from edgen.store.votes import Votes, select_votes_that_hold

_NO_PROBABILITY = ProbabilitySignal(a=None, b=None, p=None, tie=False, abstain=True)


Places = tuple[ResponsePlace, ResponsePlace]


def list_response_places(candidate: Candidate) -> Iterator[Places]:
    """Yield the places of every two responses to one turn of a conversation."""
    for at, turn in enumerate(candidate.turns):
        numbers = range(1 + len(turn.alternatives))
        for one, other in itertools.combinations(numbers, 2):
            yield ResponsePlace(at, one), ResponsePlace(at, other)


def list_response_pairs(reader: RunReader, candidate: Candidate, votes: Votes) -> Iterator[Pair]:
    """Yield the pairs of a conversation's responses that a mark distinguishes or that people voted on."""
    for places in list_response_places(candidate):
        a, b = (cut_at_response(candidate, place) for place in places)
        first, second = a.turns[-1], b.turns[-1]
        human = make_human_signal(select_votes_that_hold(votes, a, b))
        flag, judged = _read_flag_signal(first, second), _read_judge_signal(first, second)
        signals = Signals(probability=_NO_PROBABILITY, human=human)
        if flag.p is not None or judged.p is not None:
            signals = msgspec.structs.replace(signals, flag=flag, judged=judged)
        elif human is None:
            continue
        yield _make_pair(reader, (a, b), places, signals)


def _read_flag_signal(a: Turn, b: Turn) -> MarkSignal:
    """Return the signal by the flag: the response that was not called nonsense is better."""
    marks = ["nonsense" if turn.data.get("nonsense") is True else None for turn in (a, b)]
    return _make_signal(marks, {None: 1, "nonsense": 0})


def _read_judge_signal(a: Turn, b: Turn) -> MarkSignal:
    """Return the signal by the judge: the best response is better than the worst. Other responses have no
    mark."""
    marks = [turn.data.get("judged") for turn in (a, b)]
    return _make_signal(
        [mark if mark in ("best", "worst") else None for mark in marks], {"best": 1, "worst": 0}
    )


def _make_signal(marks: list[str | None], worth: dict[str | None, int]) -> MarkSignal:
    a, b = (worth.get(mark) for mark in marks)
    says = a is not None and b is not None and a != b
    p = float(a > b) if says and a is not None and b is not None else None
    return MarkSignal(a=marks[0], b=marks[1], p=p, tie=False, abstain=not says)


def _make_pair(
    reader: RunReader, sides: tuple[Candidate, Candidate], places: Places, signals: Signals
) -> Pair:
    """Return a pair without a label."""
    a, b = sides
    directed = [find_first_directed([one.turns[-1].text]) for one in (a, b)]
    if directed != [None, None]:
        said = JudgeDirected(a=directed[0], b=directed[1])
        signals = msgspec.structs.replace(signals, judge_directed=said)
    at = places[0].turn
    same = a.turns[-1].text.strip() == b.turns[-1].text.strip()
    return Pair(
        id=f"{a.id}-t{at}-{places[0].number}-{places[1].number}",
        scenario=a.scenario,
        split=reader.split(reader.scenario(a.scenario)),
        origin="responses",
        a=_make_side(a, places[0]),
        b=_make_side(b, places[1]),
        prefix_turns=at,
        differs_at=a.turns[-1].role,
        texts=digest_texts(a, b),
        signals=signals,
        label=None,
        left_out="identical" if same else None,
        provenance={"run": reader.name, "edgen": __version__, "simulated": a.simulated},
    )


def _make_side(candidate: Candidate, place: ResponsePlace) -> Side:
    return Side(id=candidate.id, replicate=candidate.replicate, arm=candidate.arm or None, response=place)

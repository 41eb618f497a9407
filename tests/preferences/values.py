"""Pairs for tests: built by hand, and random ones that a run could contain."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from edgen.core import pair as model
from edgen.core.pair import (
    Compare,
    HumanSignal,
    HumanVote,
    JudgeDirected,
    Label,
    OracleSignal,
    Order,
    Pair,
    ProbabilitySignal,
    RolloutSignal,
    Side,
    SideName,
    Signals,
    Strength,
    Verdict,
)
from edgen.preferences.signals import make_human_signal, make_oracle_signal, make_probability_signal

JUDGE = "0123456789abcdef"
OTHER_JUDGE = "fedcba9876543210"


def oracle(ab: str, ba: str, judge: str = JUDGE, compare: Compare = "conversation") -> OracleSignal:
    """Return an oracle's signal from the letters of its verdicts: a, b, or ? for an unreadable one."""
    orders: tuple[tuple[Order, str], ...] = (("ab", ab), ("ba", ba))
    names: dict[str, SideName] = {"a": "a", "b": "b"}
    verdicts = [
        Verdict(order=order, vote=vote, choice=names.get(letter), text="hm" if letter == "?" else None)
        for order, letters in orders
        for vote, letter in enumerate(letters)
    ]
    return make_oracle_signal(judge, "judge-1", compare, verdicts)


def votes(text: str) -> HumanSignal | None:
    """Return people's signal from letters: a, b or t for a tie."""
    choice: dict[str, Any] = {"a": "a", "b": "b", "t": "tie"}
    return make_human_signal([HumanVote(rater=str(i), choice=choice[c]) for i, c in enumerate(text)])


def pair(
    a: int = 0,
    b: int = 1,
    *signals: OracleSignal,
    scenario: int = 0,
    said: tuple[float | None, float | None] = (None, None),
    human: str = "",
    left_out: str | None = None,
    directed: JudgeDirected | UnsetType = UNSET,
) -> Pair:
    """Return a pair of two replicates, without a label."""
    return Pair(
        id=f"x-{scenario:06d}-r{a}-r{b}",
        scenario=scenario,
        split="train",
        origin="replicates",
        a=Side(id=f"x-{scenario:06d}-r{a}", replicate=a),
        b=Side(id=f"x-{scenario:06d}-r{b}", replicate=b),
        prefix_turns=0,
        differs_at="Teacher",
        texts="00112233445566aa",
        signals=Signals(
            probability=make_probability_signal(*said),
            oracle=signals,
            human=votes(human),
            judge_directed=directed,
        ),
        label=None,
        left_out=left_out,
        provenance={},
    )


_share = st.floats(0, 1)
_maybe = st.none() | _share
_count = st.integers(0, 2**31)
_text = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=12)
_digests = st.text("0123456789abcdef", min_size=16, max_size=16)
_compares = st.sampled_from(["conversation", "response"])
_sides = st.sampled_from(["a", "b"])
_strengths = st.builds(Strength, st.floats(-9, 9), st.floats(-9, 9), st.floats(-9, 9))
_verdicts = st.builds(
    Verdict,
    order=st.sampled_from(["ab", "ba"]),
    vote=st.integers(0, 99),
    choice=st.none() | _sides,
    text=st.none() | st.text(max_size=9),
    logprob_p=st.just(UNSET) | _maybe,
    logprob_gap=st.just(UNSET)
    | st.sampled_from(["not_told", "not_spelt", "not_found", "not_listed", "unread"]),
)
_oracles = st.builds(
    make_oracle_signal,
    _digests,
    _text,
    _compares,
    st.lists(_verdicts, max_size=6),
)
_probabilities: st.SearchStrategy[ProbabilitySignal] = st.builds(make_probability_signal, _maybe, _maybe)
_votes = st.builds(
    HumanVote, rater=_text, choice=st.sampled_from(["a", "b", "tie"]), texts=st.none() | _digests
)
_humans = st.lists(_votes, max_size=4).map(make_human_signal)
_labels = st.builds(
    Label,
    by=st.sampled_from(["oracle", "probability", "human", "flag", "judged"]),
    chosen=_sides,
    p=st.floats(0.5, 1, exclude_min=True),
    margin=st.floats(0, 1, exclude_min=True),
    judge=st.none() | _digests,
    compare=st.none() | _compares,
    k=st.just(UNSET) | st.integers(1, 99),
    se=st.just(UNSET) | st.none() | st.floats(0, 1),
)
_rollouts = st.builds(
    RolloutSignal,
    by=st.sampled_from(["oracle", "probability"]),
    k=st.integers(1, 99),
    counted=st.integers(0, 99),
    a=_maybe,
    b=_maybe,
    p=_maybe,
    se=_maybe,
    tie=st.booleans(),
    abstain=st.booleans(),
    judge=st.none() | _digests,
    model=st.none() | _text,
    verdicts=_count,
    simulated=st.booleans(),
)
_ends: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"label": _labels, "left_out": st.none()}),
    st.fixed_dictionaries(
        {
            "label": st.none(),
            "left_out": st.sampled_from(
                [
                    "identical",
                    "turns_left",
                    "judge_directed",
                    "not_judged",
                    "abstained",
                    "tie",
                    "contradicted",
                    "margin",
                    "surplus",
                ]
            ),
        }
    ),
)
_directed = st.just(UNSET) | st.builds(JudgeDirected, a=st.none() | _text, b=_text)
_places = st.builds(model.ResponsePlace, turn=_count, number=_count)
_side = st.builds(
    Side,
    id=_text,
    replicate=_count,
    arm=st.none() | _text,
    response=st.just(UNSET) | _places,
    strength=st.none() | _strengths,
)


def _marks(*marks: str) -> st.SearchStrategy[model.MarkSignal]:
    one = st.sampled_from([*marks, None])
    p = st.sampled_from([0.0, 1.0, None])
    return st.builds(model.MarkSignal, a=one, b=one, p=p, tie=st.just(False), abstain=st.booleans())


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """Draw any pair, ready to be written."""
    return Pair(
        id=draw(_text),
        scenario=draw(_count),
        split=draw(st.sampled_from(["train", "test"])),
        origin=draw(st.sampled_from(["replicates", "branch", "arms", "responses"])),
        a=draw(_side),
        b=draw(_side),
        prefix_turns=draw(_count),
        differs_at=draw(st.sampled_from(["Teacher", "Student", "Tutor", None])),
        texts=draw(_digests),
        signals=Signals(
            probability=draw(_probabilities),
            oracle=tuple(draw(st.lists(_oracles, max_size=3))),
            human=draw(_humans),
            judge_directed=draw(_directed),
            flag=draw(st.just(UNSET) | _marks("nonsense")),
            judged=draw(st.just(UNSET) | _marks("best", "worst")),
            rollouts=draw(st.just(UNSET) | st.lists(_rollouts, max_size=2).map(tuple)),
        ),
        provenance=draw(st.dictionaries(_text, st.none() | st.integers() | _text, max_size=3)),
        **draw(_ends),
    )


STRUCTS = (
    model.Pair, model.Side, model.Strength, model.Signals, model.OracleSignal, model.Verdict,
    model.ProbabilitySignal, model.HumanSignal, model.HumanVote, model.JudgeDirected,
    model.Label, model.RolloutSignal, model.LogprobSignal, model.ResponsePlace, model.MarkSignal,
)  # fmt: skip

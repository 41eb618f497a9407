"""Signals by their definitions, and votes files good and bad."""

from __future__ import annotations

import json
import tracemalloc
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.errors import DataError
from edgen.core.pair import HumanVote, OracleSignal, Order, Verdict
from edgen.preferences.signals import make_human_signal, make_oracle_signal, make_probability_signal
from edgen.store.votes import read_votes, select_votes

KNOWN = {"x-0": 0, "x-1": 0, "x-2": 0, "y-0": 1}


def oracle(ab: str, ba: str) -> OracleSignal:
    """Return verdicts from their letters: a, b, or ? for an unreadable one."""
    orders: tuple[tuple[Order, str], ...] = (("ab", ab), ("ba", ba))
    return make_oracle_signal("0" * 16, "m", "conversation", [
        Verdict(order=order, vote=i, choice=None if c == "?" else ("a" if c == "a" else "b"))
        for order, letters in orders for i, c in enumerate(letters)
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("ab", "ba", "p", "tie", "abstain"),
    [
        ("a", "a", 1.0, False, False),
        ("b", "b", 0.0, False, False),
        ("a", "b", 0.5, True, False),
        ("b", "a", 0.5, True, False),
        ("aab", "aaa", 5 / 6, False, False),
        ("ab", "aa", 0.75, True, False),  # one order favours neither
        ("ab", "ab", 0.5, True, False),
        ("aaa?", "aab", 5 / 6, False, False),  # an unreadable answer is no vote
        ("aab", "bba", 0.5, True, False),
        ("?", "a", None, False, True),
        ("a", "??", None, False, True),
        ("a?", "aa", None, False, True),  # half is not more than half
        ("aa?", "aaa", 1.0, False, False),
        ("a??", "aaa", None, False, True),
        ("aab??", "aaaaa", 5 / 6, False, False),
        ("", "", None, False, True),
    ],
)
def test_an_oracles_verdicts(ab: str, ba: str, p: float | None, tie: bool, abstain: bool) -> None:
    signal = oracle(ab, ba)
    assert signal.p == pytest.approx(p)
    assert (signal.tie, signal.abstain) == (tie, abstain)
    assert len(signal.verdicts) == len(ab) + len(ba)


@given(st.text("ab?", max_size=6), st.text("ab?", max_size=6))
def test_exchanging_the_sides_turns_the_signal(ab: str, ba: str) -> None:
    one = oracle(ab, ba)
    swap = str.maketrans("ab", "ba")
    other = oracle(ab.translate(swap), ba.translate(swap))
    assert (one.tie, one.abstain) == (other.tie, other.abstain)
    assert (one.p is None) == (other.p is None) == one.abstain
    if one.p is not None and other.p is not None:
        assert one.p + other.p == pytest.approx(1)


def test_the_share_of_an_order_stays_where_the_other_has_none() -> None:
    signal = oracle("aab", "?")
    assert (signal.wins_ab, signal.wins_ba) == (pytest.approx(2 / 3), None)


@given(st.text("ab?", max_size=7), st.text("ab?", max_size=7))
def test_an_order_has_a_share_if_more_than_half_of_it_was_read_and_of_what_was_read_alone(
    ab: str, ba: str
) -> None:
    signal = oracle(ab, ba)
    for letters, wins in ((ab, signal.wins_ab), (ba, signal.wins_ba)):
        read = letters.replace("?", "")
        assert (wins is None) == (2 * len(read) <= len(letters))
        assert wins is None or wins == read.count("a") / len(read)
    assert signal.abstain == (signal.wins_ab is None or signal.wins_ba is None) == (signal.p is None)
    assert not (signal.tie and signal.abstain)


@pytest.mark.parametrize(
    ("a", "b", "p", "tie"),
    [
        (0.9, 0.5, 0.7, False),
        (0.5, 0.9, 0.3, False),
        (0.4, 0.4, 0.5, True),
        (0.3 - 0.2, 0.1, 0.5, True),  # which is a little less than 0.1
        (1.0, 0.0, 1.0, False),
    ],
)
def test_probabilities(a: float, b: float, p: float, tie: bool) -> None:
    signal = make_probability_signal(a, b)
    assert (signal.p, signal.tie, signal.abstain) == (pytest.approx(p), tie, False)


@pytest.mark.parametrize(("a", "b"), [(None, 0.5), (0.5, None), (None, None)])
def test_a_probability_that_is_missing_abstains(a: float | None, b: float | None) -> None:
    signal = make_probability_signal(a, b)
    assert (signal.p, signal.tie, signal.abstain) == (None, False, True)


def votes(*choices: Literal["a", "b", "tie"]) -> list[HumanVote]:
    return [HumanVote(rater=str(i), choice=choice) for i, choice in enumerate(choices)]


def test_people() -> None:
    assert make_human_signal([]) is None
    for choices, p, tie in [
        (("a",), 1.0, False),
        (("b", "tie"), 0.25, False),
        (("a", "b"), 0.5, True),
        (("tie",), 0.5, True),
    ]:
        signal = make_human_signal(votes(*choices))  # type: ignore[arg-type]
        assert signal is not None
        assert (signal.p, signal.tie) == (p, tie)


def line(a: str, b: str, choice: str, rater: str = "kim") -> str:
    return json.dumps({"a": a, "b": b, "choice": choice, "rater": rater})


def test_votes_are_for_a_pair_in_whichever_order() -> None:
    found = read_votes(
        [line("x-0", "x-1", "a"), "", "  \n", line("x-1", "x-0", "a", "lee"), line("x-2", "x-0", "tie")],
        "v.jsonl",
        KNOWN.get,
    )
    assert [(v.rater, v.choice) for v in select_votes(found, "x-0", "x-1")] == [("kim", "a"), ("lee", "b")]
    assert [(v.rater, v.choice) for v in select_votes(found, "x-1", "x-0")] == [("kim", "b"), ("lee", "a")]
    assert [v.choice for v in select_votes(found, "x-0", "x-2")] == ["tie"]
    assert select_votes(found, "x-1", "x-2") == ()


def test_a_vote_may_name_the_texts_it_was_cast_on() -> None:
    digest = "00112233445566aa"
    said = {"a": "x-1", "b": "x-0", "choice": "a", "rater": "kim", "texts": digest}
    found = read_votes(
        [
            json.dumps(said),
            json.dumps({**said, "rater": "lee", "texts": None}),
            line("x-0", "x-1", "a", "ann"),
        ],
        "v",
        KNOWN.get,
    )
    here = [("kim", "b", digest), ("lee", "b", None), ("ann", "a", None)]
    assert [(v.rater, v.choice, v.texts) for v in select_votes(found, "x-0", "x-1")] == here
    assert [v.texts for v in select_votes(found, "x-1", "x-0")] == [digest, None, None]


def test_lines_are_read_one_by_one_and_scenarios_asked_for_as_they_are_needed() -> None:
    count = 5_000
    lines = (line(f"s{i % 50}-0", f"s{i % 50}-1", "ab"[i % 2]) for i in range(count))
    tracemalloc.start()
    found = read_votes(lines, "v", lambda name: int(name[1:].partition("-")[0]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 50
    assert [v.choice for v in select_votes(found, "s7-0", "s7-1")] == ["b"]
    assert peak < 150_000


def test_a_rater_may_change_their_mind() -> None:
    found = read_votes(
        [line("x-0", "x-1", "a"), line("x-1", "x-0", "a"), line("x-0", "x-1", "tie", "lee")], "v", KNOWN.get
    )
    assert [(v.rater, v.choice) for v in select_votes(found, "x-0", "x-1")] == [("kim", "b"), ("lee", "tie")]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("{", "not valid JSON"),
        ('"a"', "expected an object"),
        ("[]", "expected an object"),
        ("[" * 100_000, "not valid JSON"),
        ('{"a": "x-0", "b": "x-1", "choice": "a"}', "rater is missing"),
        ('{"a": "x-0", "b": "x-1", "choice": "a", "rater": "k", "why": 1}', "unknown key 'why'"),
        (line("x-9", "x-1", "a"), "no conversation with the id 'x-9'"),
        (line("x-0", "x-0", "a"), "the same conversation"),
        (line("x-0", "y-0", "a"), "different scenarios, 0 and 1"),
        (line("x-0", "x-1", "A"), "a, b or tie"),
        (line("x-0", "x-1", "a", " "), "expected a text"),
        ('{"a": "x-0", "b": "x-1", "choice": "a", "rater": "k", "texts": "0F"}', "16 hexadecimal digits"),
        ('{"a": "x-0", "b": "x-1", "choice": "a", "rater": "k", "texts": 7}', "16 hexadecimal digits"),
        (line("x-9", "x-8", "a"), "b: this run has no conversation with the id 'x-8'"),
        ('{"a": 1, "b": "x-1", "choice": null, "rater": "k"}', "a: expected a text, got 1"),
        ('{"a": "\ud800", "b": "x-1", "choice": "a", "rater": "k"}', "not valid JSON"),
    ],
)
def test_a_bad_line_is_named(bad: str, words: str) -> None:
    with pytest.raises(DataError) as caught:
        read_votes([line("x-0", "x-1", "a"), bad], "votes.jsonl", KNOWN.get)
    assert "votes.jsonl" in str(caught.value)
    assert any(problem.path == "line 2" and words in problem.message for problem in caught.value.problems)


def test_every_problem_is_reported_at_once() -> None:
    with pytest.raises(DataError) as caught:
        read_votes(["{", line("x-0", "x-1", "a"), '{"a": 3, "choice": "c"}'], "v", KNOWN.get)
    assert [problem.path for problem in caught.value.problems] == ["line 1"] + ["line 3"] * 4
    assert "5 problems" in str(caught.value)


def test_a_file_that_is_something_else_makes_no_book() -> None:
    with pytest.raises(DataError) as caught:
        read_votes(["nonsense"] * 10_000, "v", KNOWN.get)
    assert "10,000 problems" in str(caught.value)
    assert len(str(caught.value).splitlines()) < 60


@given(
    st.lists(
        st.one_of(st.text(max_size=20), st.sampled_from(["{}", "null", "1e999", '{"a":{}}', '{"a":[]}']))
    )
)
def test_lines_of_any_text_end_in_votes_or_a_data_error(lines: list[str]) -> None:
    try:
        found = read_votes(lines, "v", KNOWN.get)
    except DataError as problem:
        found = None
        problems = problem.problems
    if found is None:
        assert problems
    else:
        assert found == {}
        assert all(not line.strip() for line in lines)

"""The confidence of a judge: the position of its verdict, and the tokens there that count for each side."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.values import Token
from edgen.reading.answers.verdict import read_verdict
from edgen.reading.answers.verdict_logprobs import Bounds, find_verdict, read_preference


def spelt(*texts: str, **likely: float) -> list[Token]:
    return [Token(text, -0.01) for text in texts]


def at(tokens: list[Token], place: int, likely: dict[str, float]) -> list[Token]:
    """Return the tokens, with these probabilities at one place; the generated token is one of them."""
    top = tuple((text, math.log(share)) for text, share in likely.items())
    said = tokens[place].text
    return [
        *tokens[:place],
        Token(said, dict(top).get(said, math.log(0.5)), top),
        *tokens[place + 1 :],
    ]


def known(text: str, said: Any, tokens: list[Token]) -> float:
    """Return the probability where both sides are listed."""
    found = read_preference(text, said, tokens)
    assert isinstance(found, Bounds)
    assert found.low == found.high
    return found.low


# An answer as its tokens, the place of the verdict among them.
ANSWERS: list[tuple[list[str], int]] = [
    (["1"], 0),
    (["2", "."], 0),
    ([" 2"], 0),
    (["**", "1", "**"], 1),
    (["**1", "**"], 0),
    (["Interaction", " ", "2"], 2),
    (["Interaction", " 2", " is", " better", "."], 1),
    (["Output", ":", " 1"], 2),
    (['{"', "answer", '":', " ", "2", "}"], 4),
    (['{"', "answer", '":', ' "', "1", '"}'], 4),
    (['{"', "answer", '":', ' "1', '"}'], 3),
    # a reason first, which speaks of both
    (["Interaction", " 1", " lacks", " warmth", ".", " \n\n", "Final", " answer", ":", " 2"], 9),
    (["In", " interaction 2", " nobody", " asks", ".\n", "In interaction", " 1", " all do.", "\n\n", "1"], 9),
    # a reason after the verdict, and a verdict given twice
    (["2", "\n\n", "Because", " interaction", " 1", " lacks", " a", " goal", "."], 0),
    (["Interaction", " 2", " is", " better", ".", "\n\n", "Answer", ":", " 2"], 1),
    (['{"answer": ', "2", ', "reason": "Interaction ', "1", ' is cold"}'], 1),
    (['{"reason": "Interaction 2 is cold", "answer": ', "1", "}"], 1),
    # thoughts
    (["<think>", "Maybe", " 2", ", or", " 1", "?", "</think>", "\n", "1"], 8),
    # words
    (["The", " second", " one", "."], 1),
    (["First"], 0),
    (["I", " prefer", " the", " first", " one", " because", " it", " is", " clear", "."], 3),
]


@pytest.mark.parametrize(
    ("texts", "place"), ANSWERS, ids=lambda value: "".join(value) if isinstance(value, list) else ""
)
def test_the_verdicts_token_is_found_however_the_answer_is_laid_out(texts: list[str], place: int) -> None:
    text = "".join(texts)
    said = read_verdict(text)
    assert said is not None
    own = texts[place]
    other = own.translate(str.maketrans("12", "21"))
    for one, two in (("first", "second"), ("First", "Second"), ("second", "first")):
        other = other.replace(own.strip(), two) if own.strip() == one else other
    tokens = at(spelt(*texts), place, {own: 0.6, other: 0.2, " and": 0.1})
    assert known(text, said, tokens) == pytest.approx(0.75 if said == 1 else 0.25)


def test_all_tokens_that_begin_a_side_are_added_up() -> None:
    likely = {"2": 0.4, " 2": 0.1, "2.": 0.05, "1": 0.2, "**1": 0.05, "12": 0.1, "21": 0.05, " one": 0.03}
    assert known("2", 2, at(spelt("2"), 0, likely)) == pytest.approx(0.25 / 0.8)


def test_words_count_where_the_verdict_is_a_word() -> None:
    likely = {" second": 0.3, " sec": 0.1, " first": 0.3, " f": 0.1, " 1": 0.1, " third": 0.1}
    assert known("The second one.", 2, at(spelt("The", " second", " one", "."), 1, likely)) == pytest.approx(
        0.5
    )


def test_what_stands_before_the_number_in_its_token_has_to_be_the_same() -> None:
    likely = {"Option2": 0.5, "Option1": 0.2, "Text1": 0.2}
    assert known("Option2", 2, at(spelt("Option2"), 0, likely)) == pytest.approx(0.2 / 0.7, abs=1e-6)


@pytest.mark.parametrize(
    ("said", "likely", "bounds", "preference"),
    [
        # The rest of 1 after the listed tokens is 0.1: the other side may have any part of it.
        ("1", {"1": 0.8, "Both": 0.1}, (0.8 / 0.9, 1), 0.8 / 0.9),
        ("2", {"2": 0.8, "Both": 0.1}, (0, 0.1 / 0.9), 0.1 / 0.9),
        ("1", {"1": 0.3, "Both": 0.2}, (0.3 / 0.8, 1), None),
        ("2", {"2": 0.3, "The": 0.1}, (0, 0.6 / 0.9), None),
        ("1", {"1": 0.99, "Both": 0.01}, (1, 1), 1),  # nothing remains
        ("1", {"1": 0.2, "2": 0.3}, (0.4, 0.4), 0.4),  # both are listed: known for any remainder
    ],
)
def test_a_side_that_is_not_listed_has_what_remains_of_1_at_most(
    said: str, likely: dict[str, float], bounds: tuple[float, float], preference: float | None
) -> None:
    for texts in ([said], ['{"', "better", '":', " ", said, "}"]):
        place = texts.index(said)
        found = read_preference("".join(texts), int(said), at(spelt(*texts), place, likely))  # type: ignore[arg-type]
        assert isinstance(found, Bounds)
        assert found == pytest.approx(bounds, abs=1e-6)
        if preference is None:
            assert found.preference is None
        else:
            assert found.preference == pytest.approx(preference, abs=1e-6)
        assert found.other.other == pytest.approx(found)


@pytest.mark.parametrize(
    ("text", "tokens", "why"),
    [
        ("1", None, "not_told"),
        ("1", [], "not_told"),
        ("1", spelt("No", "thing"), "not_spelt"),
        ("The former is better: it is warm.", spelt("The former is better: it is warm."), "not_found"),
        ("Interaction 1 is worse.", spelt("Interaction", " 1", " is worse."), "not_found"),
    ],
)
def test_why_there_is_none(text: str, tokens: Any, why: str) -> None:
    said = read_verdict(text) or 2
    assert read_preference(text, said, tokens) == why


def test_what_the_text_has_lost_may_stand_around_it() -> None:
    """Some services list the tokens of thoughts, and of marks that end an answer."""
    tokens = spelt("Let", " me", " see", ":", " 2", "?", "\n", "\n", "1", "<|im_end|>")
    assert known("1", 1, at(tokens, 8, {"1": 0.5, "2": 0.25})) == pytest.approx(2 / 3, abs=1e-6)
    lossy = [Token("1", -0.1, (("1", -0.1), ("2", -2.0))), Token(" \ufffd", -1.0)]
    found = read_preference("1 ✔", 1, lossy)
    assert isinstance(found, Bounds)


@given(st.text(st.sampled_from('12 onetwfirsc.:\n"{}Interaction'), max_size=60), st.sampled_from([1, 2]))
def test_any_text_is_read_or_not_and_never_raises(text: str, said: Any) -> None:
    tokens = [Token(text[i : i + 3], -0.5) for i in range(0, len(text), 3)]
    found = read_preference(text, said, tokens)
    assert isinstance(found, str) or 0 <= found.low <= found.high <= 1
    mention = find_verdict(text, said)
    assert mention is None or mention[0]


RAW = [
    ("1", ["▁1"], 0, {"▁1": 0.6, "▁2": 0.2}),
    ("Interaction 1 is better.", ["Interaction", "Ġ1", "Ġis", "Ġbetter", "."], 1, {"Ġ1": 0.6, "Ġ2": 0.2}),
    ("Interaction 1 is better.", ["▁Interaction", "▁1", "▁is", "▁better", "."], 1, {"▁1": 0.6, "▁2": 0.2}),
    ("Because.\n\n1", ["Because", ".", "Ċ", "Ċ", "1"], 4, {"1": 0.6, "2": 0.2}),
    ("1", ["<0x31>"], 0, {"<0x31>": 0.6, "<0x32>": 0.2}),
    ("1", ["", "1", "", "<|eot_1|>"], 1, {"1": 0.6, "2": 0.2}),
    ('{"answer":1}', ['{"answer', '":1', "}"], 1, {'":1': 0.6, '":2': 0.2}),
    ("1", ["1"], 0, {"1": 0.6, "12": 0.1, "-2": 0.1, "2": 0.2}),
    ("First", ["First"], 0, {"First": 0.6, "Fi": 0.1, "Second": 0.2}),
]


@pytest.mark.parametrize(("text", "texts", "place", "likely"), RAW)
def test_tokens_are_read_however_a_service_writes_them(
    text: str, texts: list[str], place: int, likely: dict[str, float]
) -> None:
    assert known(text, 1, at(spelt(*texts), place, likely)) == pytest.approx(0.75)


@pytest.mark.parametrize("twice", ["1", "2"])
def test_tokens_that_are_spelt_alike_are_added_up(twice: str) -> None:
    likely = [("1", 0.6), ("2", 0.2)]
    other = {"1": ("1", 0.2), "2": ("2", 0.1)}[twice]
    top = tuple((text, math.log(share)) for text, share in (*likely, other))
    assert known("1", 1, [Token("1", math.log(0.6), top)]) == pytest.approx(
        0.8 if twice == "1" else 2 / 3, abs=1e-6
    )

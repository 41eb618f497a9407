"""Growing a space: values in a reply, near-duplicates, and the requests."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core import resources
from edgen.core.values import Message, Reply
from edgen.prompting import load_prompt
from edgen.protocols.space_growth import BATCH, SHOWN, VARIABLES, NewValues, ask_for_values, draw_shown
from edgen.reading.answers.values import LONGEST, read_values
from edgen.space import load_space
from edgen.space.entries import value_problem
from edgen.space.similar_values import KnownValues, PlainForm
from tests.scenarios import DIMENSIONS
from tests.scenarios import LISTS as FILE_LISTS
from tests.timing import takes_under

SPACE = load_space(resources.find("preference_space", "education_dialogue"))
PROMPT = load_prompt(resources.find("prompts", "space_expand"), VARIABLES, expects="values")

LISTS = {
    "bare": "Atoms\nDNA\nIrony",
    "numbered": "Here are 3 topics:\n\n1. Atoms\n2) DNA\n(3) Irony\n\nLet me know if you want more!",
    "bulleted": "- Atoms\n* DNA\n• Irony",
    "quoted": '"Atoms",\n"DNA",\n“Irony”',
    "bold": "1. **Atoms**\n2. **DNA**\n3. **Irony**",
    "json": '["Atoms", "DNA", "Irony"]',
    "json object": '```json\n{"topics": ["Atoms", {"topic": "DNA"}, "Irony"]}\n```',
    "broken json": '[\n"Atoms",\n"DNA",\n"Irony"',
    "fenced": "Sure!\n```\nAtoms\nDNA\nIrony\n```\nEnjoy.",
    "thinking": "<think>\n- Zeus?\n</think>\nAtoms\nDNA\nIrony",
    "headed": "# Topics\n---\nAtoms\nDNA\nIrony",
    "other breaks": "Atoms\r\nDNA\u2028Irony",
    "full stops": "Atoms.\nDNA\nIrony.",
}


@pytest.mark.parametrize("case", LISTS)
def test_lists_as_models_write_them(case: str) -> None:
    assert read_values(LISTS[case]) == ["Atoms", "DNA", "Irony"]


def test_no_prompt_is_sent_twice_however_often_nothing_new_comes() -> None:
    work = ask_for_values(SPACE, "topic", 10, PROMPT, 7)
    sent = [next(work).messages]
    with contextlib.suppress(StopIteration):
        while True:
            sent.append(work.send(Reply("Atoms\nDNA")).messages)
    assert len(sent) == len(set(sent)) > 1


def test_what_is_no_list_lists_nothing() -> None:
    for text in (
        "",
        "\n\n",
        "I'm sorry, but I can't help with that request.",
        "Of course! What about it?",
        "{}",
    ):
        assert read_values(text) == []


def test_a_reply_cut_off_loses_its_last_line() -> None:
    assert read_values("1. Atoms\n2. DNA\n3. Iro", cut=True) == ["Atoms", "DNA"]


def test_what_looks_like_a_mark_and_is_none_stays() -> None:
    text = "3.14 and other numbers\n1984 by Orwell\n7 Wonders\nMartin Luther King Jr.\n*a* b"
    assert read_values(text) == text.split("\n")


@pytest.mark.parametrize(
    "text",
    ["x" * 10**6, "- " * 500_000, "[" * 10**6, "\n" * 10**6, "1. " * 300_000, "*" * 10**6, "<think>" * 10**5],
)
def test_long_replies_are_read_in_no_time(text: str) -> None:
    assert takes_under(1, lambda: read_values(text))


@given(st.text(max_size=300), st.booleans())
def test_reading_never_raises(text: str, cut: bool) -> None:
    for value in read_values(text, cut=cut):
        assert value
        KnownValues(["Zeus", ""]).find_similar(value)


THERE = [
    "The Water Cycle",
    "Photosynthesis",
    "World War 1",
    "Newton's First Law of Motion",
    "Atoms",
    "Café culture",
]
ALIKE = {
    "WATER CYCLE, THE": "The Water Cycle",
    "water cycles": "The Water Cycle",
    "Photosyntesis": "Photosynthesis",
    "Introduction to Photosynthesis": "Photosynthesis",
    "world war 1.": "World War 1",
    "Newtons First Law of Motion": "Newton's First Law of Motion",
    "“Atom”": "Atoms",
    "Cafe Culture": "Café culture",
    "At\u200boms": "Atoms",
}  # fmt: skip


@pytest.mark.parametrize("value", ALIKE)
def test_near_duplicates_are_found(value: str) -> None:
    twin = KnownValues(THERE).find_similar(value)
    assert twin is not None
    assert twin[1] == ALIKE[value]


@pytest.mark.parametrize(
    "value",
    [
        "World War 2",
        "World War II",
        "Newton's Second Law of Motion",
        "Photons",
        "Cycles of the Moon",
        "水循环",
        "…",
    ],
)
def test_what_differs_stays(value: str) -> None:
    assert KnownValues(THERE).find_similar(value) is None


@pytest.mark.parametrize("name", ["broad", "education_dialogue"])
def test_no_two_values_of_a_shipped_space_are_alike(name: str) -> None:
    space = load_space(resources.find("preference_space", name))
    for dimension in space.dimensions:
        known = KnownValues()
        for entry in dimension.entries:
            assert known.find_similar(entry.value) is None, entry.value
            known.add(entry.value)


@given(st.text(max_size=40), st.lists(st.text(max_size=40), max_size=6))
def test_a_value_is_its_own_twin(value: str, others: list[str]) -> None:
    known = KnownValues([*others, value])
    assert known.find_similar(value) is not None
    PlainForm(value)


def play(answers: list[Reply], wanted: int, seed: int = 7) -> tuple[NewValues, list[str]]:
    """Return the result of these answers, and the prompts of the requests."""
    asking = ask_for_values(SPACE, "topic", wanted, PROMPT, seed)
    asked = []
    try:
        request = next(asking)
        for answer in answers:
            asked.append(request.messages[-1].content)
            request = asking.send(answer)
    except StopIteration as end:
        return end.value, asked
    raise AssertionError("it goes on asking")


def made_up(first: int, last: int) -> Reply:
    return Reply("\n".join(f"{i}. Theorem {i * 37} of {i * 11}" for i in range(first, last)))


def test_it_asks_until_there_is_enough_and_shows_what_is_new() -> None:
    result, asked = play([made_up(1, 41), made_up(31, 71)], 60)
    assert len(result.kept) == 60
    assert result.dropped == {"identical": 10, "not_needed": 10}
    assert (result.answers, result.empty) == (2, 0)
    assert all(f"Write {BATCH} more" in text for text in asked)
    assert "- Theorem 37 of 11\n" not in asked[0]
    assert sum("- Theorem" in line for line in asked[1].split("\n")) > 10


def test_three_answers_without_anything_new_end_it() -> None:
    refused = Reply("", refusal="I must not.")
    result, asked = play(
        [made_up(1, 11), made_up(1, 11), refused, Reply("Photosynthesis\nEvolution\nDNA")], 60
    )
    assert (len(result.kept), result.answers, result.empty) == (10, 4, 1)
    assert len(asked) == 4
    result, _ = play([refused, refused, made_up(1, 9), refused, refused, refused], 60)
    assert (len(result.kept), result.answers) == (8, 6)


def test_the_values_shown_follow_from_the_seed() -> None:
    values = [f"value {i}" for i in range(1000)]
    first = draw_shown(values, 7, 0)
    assert first == draw_shown(values, 7, 0)
    assert len(first) == SHOWN
    assert first == sorted(first, key=values.index)
    assert first not in (draw_shown(values, 8, 0), draw_shown(values, 7, 1))
    assert draw_shown(values[:3], 7, 0) == values[:3]


def test_every_dimension_has_its_sentence() -> None:
    texts = set()
    for dimension in DIMENSIONS:
        (message,) = next(ask_for_values(SPACE, dimension, 5, PROMPT, 7)).messages
        assert isinstance(message, Message)
        assert FILE_LISTS[dimension].replace("_", " ") in message.content
        texts |= {line for line in message.content.split("\n") if line.startswith("Each ")}
    assert len(texts) == len(DIMENSIONS)


@given(st.lists(st.text(max_size=250), max_size=5))
def test_whatever_is_kept_may_stand_in_a_space(lines: list[str]) -> None:
    answer = Reply("\n".join(f"- {line}" for line in lines))
    result, _ = play([answer, answer, answer, answer], 500)
    for value in result.kept:
        assert value_problem(value) is None
        assert len(value) <= LONGEST

"""Formulas, code, quotations and smileys in turns: they belong to the speaker, in every layout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import replies
from bench.reading import EVERY
from bench.released import list_exchanges
from edgen.core.values import Conversation
from edgen.reading import read
from edgen.reading.conversation import read_unknown
from edgen.reading.learned.layouts import Layouts
from edgen.reading.other_speaker import holds_other_speaker
from edgen.reading.roles import TEACHER_STUDENT

MARKED = list_exchanges(Path(replies.__file__).with_name("formulas.json"))
PLAIN = [
    (
        ("Teacher", f"{word} is the one that I would take, and so would most of us."),
        ("Student", f"{other} is what I would like to see first, if we can."),
    )
    for word, other in (
        ("Red", "Clay"), ("Iron", "Wool"), ("Water", "Bread"), ("Salt", "Milk"), ("Wood", "Sugar"), ("Light", "Steam"),
        ("Glass", "Coal"), ("Sand", "This"),
    )
]  # fmt: skip
BASE = [
    "Let us begin with the leaf.",
    "Okay, I know it a bit.",
    "What is in it, then?",
    "It is green, I think.",
]


def read_turns(form: str, said: list[str], roles: tuple[str, str] = ("Teacher", "Student")) -> list[str]:
    """Return the texts of a reply with these texts in a form, as they are read."""
    turns = [form.format(role=roles[place % 2], text=text) for place, text in enumerate(said)]
    head, foot = ("turns = [\n", "\n]") if form.startswith("(") else ("", "")
    result = read(head + "\n".join(turns) + foot + "\n\nProbability: 0.5")
    assert isinstance(result, Conversation), result
    assert result.probability == 0.5
    assert [turn.role for turn in result.turns] == [("Teacher", "Student")[i % 2] for i in range(len(said))]
    return [turn.text for turn in result.turns]


@pytest.mark.parametrize(
    "form",
    ["{role}: {text}", "**{role}:** {text}", "[{role}] {text}", "### {role}\n{text}\n", "{role}\n{text}\n"],
)
@pytest.mark.parametrize(
    "names", [("Mr. Teacher", "The Student"), ("MS. TEACHER", "STUDENT"), ("Dr Teacher", "Mrs Student")]
)
def test_a_title_before_a_role_belongs_to_its_label(form: str, names: tuple[str, str]) -> None:
    assert read_turns(form, BASE * 2, names) == BASE * 2


@pytest.mark.parametrize("odd", ["I give up :(", "I give up (or so.", "One) two, and three."])
def test_a_bracket_in_one_turn_leaves_the_ends_of_calls_to_the_layout(odd: str) -> None:
    said = [*BASE, odd, *BASE]
    assert read_turns('say("{role}", "{text}");', said) == said


@pytest.mark.parametrize("odd", ["Well, it's **bold** here.", "Two * three is six."])
def test_texts_in_italics_may_hold_further_marks(odd: str) -> None:
    said = [*BASE, odd, *BASE]
    assert read_turns("**{role}:** *{text}*", said) == said


@pytest.mark.parametrize(
    "form", ['("{role}", "{text}"),', 'Teacher:  "{text}",', '- role: {role}\n  text: "{text}"']
)
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"It is \\frac{1}{2}, or \"half\".", r'It is \frac{1}{2}, or "half".'),
        (r"It is \frac{1}{2} \\ or so.", r"It is \frac{1}{2} \\ or so."),
        (r"We say \\neq here.\nAnd there.", "We say \\neq here.\nAnd there."),
    ],
)
def test_backslashes_are_decoded_where_all_are_doubled(form: str, written: str, meant: str) -> None:
    form = form.replace("Teacher:", "{role}:")
    assert read_turns(form, [*BASE, written, *BASE]) == [*BASE, meant, *BASE]


def test_a_list_of_lists_gives_its_probability_by_name() -> None:
    said = [[("Teacher", "Student")[place % 2], text] for place, text in enumerate(BASE)]
    result = read(json.dumps([*said, ["probability", 0.3]]))
    assert isinstance(result, Conversation)
    assert (result.probability, len(result.turns)) == (0.3, 4)
    result = read(json.dumps([*said, ["probability of failure", 0.3]]))
    assert isinstance(result, Conversation)
    assert result.probability is None


LEARNED = ["lines", "published", "headings", "XML turns", "JSON", "numbered", "YAML, blocks", "quoted lines"]


@pytest.mark.parametrize("layout", LEARNED)
def test_turns_with_marks_are_read_by_the_learned_layout(
    layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    layouts = Layouts(TEACHER_STUDENT)
    monkeypatch.setattr(replies, "exchanges", PLAIN)
    for number in range(4):
        text = EVERY[layout](number)
        result = read_unknown(text, TEACHER_STUDENT)
        assert isinstance(result, Conversation)
        layouts.learn(text, result)
    known = 0
    for exchange in MARKED:
        monkeypatch.setattr(replies, "exchanges", [*PLAIN[:4], exchange, *PLAIN[5:]])
        text = EVERY[layout](5)
        found = layouts.find(text)
        if found is not None:
            result = read_unknown(text, TEACHER_STUDENT)
            assert found[0] == result, text
            assert holds_other_speaker(found[1], TEACHER_STUDENT) == holds_other_speaker(
                found[0].turns, TEACHER_STUDENT
            )
            known += 1
    assert known >= 0.75 * len(MARKED), known


def test_entities_are_left_to_the_general_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    layouts = Layouts(TEACHER_STUDENT)
    monkeypatch.setattr(replies, "exchanges", PLAIN)
    for number in range(4):
        text = EVERY["key=value"](number)
        result = read_unknown(text, TEACHER_STUDENT)
        assert isinstance(result, Conversation)
        layouts.learn(text, result)
    text = EVERY["key=value"](5)
    assert layouts.read(text) is not None
    for said in ("the one", "a &amp; b", "3 &lt; 5"):
        changed = text.replace("the one", said, 1)
        assert layouts.read(changed) in (None, read_unknown(changed, TEACHER_STUDENT))


def test_a_layout_is_learned_from_turns_that_it_leaves_to_the_general_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layouts = Layouts(TEACHER_STUDENT)
    odd = (("Teacher", 'Say "so" first.** Then (go'), ("Student", "```x``` is code, isn't it?"))
    monkeypatch.setattr(replies, "exchanges", [odd, *PLAIN[1:]])
    for number in range(4):
        text = EVERY["lines"](number)
        result = read_unknown(text, TEACHER_STUDENT)
        assert isinstance(result, Conversation)
        assert layouts.find(text) is None
        layouts.learn(text, result)
    monkeypatch.setattr(replies, "exchanges", PLAIN)
    assert layouts.find(EVERY["lines"](5)) is not None


def test_lines_below_the_last_turn_are_left_to_the_general_reader() -> None:
    layouts = Layouts(TEACHER_STUDENT)
    turns = [f"{('Teacher', 'Student')[place % 2]}: {text}" for place, text in enumerate(BASE)]
    below = [*turns[:1], f"{turns[1]}\n\nI am here, too.", *turns[2:]]
    for lines in (turns, below, turns):
        text = "\n".join([*lines, "Probability: 0.4"])
        result = read_unknown(text, TEACHER_STUDENT)
        assert isinstance(result, Conversation)
        layouts.learn(text, result)
    assert layouts.find("\n".join([*turns, "Probability: 0.2"])) is not None
    text = "\n".join([*turns, "", "Number of turns: 12", "Probability: 0.4"])
    found = layouts.read(text)
    assert found is None or found == read_unknown(text, TEACHER_STUDENT)

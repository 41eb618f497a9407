"""Names in expressions for one conversation."""

from __future__ import annotations

import pytest

from edgen.config.label_set import find_label_set, make_inline_set
from edgen.core.values import Conversation, Scenario, Turn
from edgen.expressions.conversation import (
    ConversationNames,
    Facts,
    LabelledWith,
    list_named_layers,
    make_label_value,
)
from edgen.expressions.language import Expression, ExpressionError
from edgen.space import Dimension, Entry, Space, SpaceRole

_SPACE = Space(
    name="fractions",
    dimensions=(
        Dimension("topic", (Entry("Adding", fields={"grade": 4}), Entry("Comparing", fields={"grade": 3}))),
        Dimension("turns", (Entry("few"), Entry("many"))),
    ),
    roles=(SpaceRole("Tutor", ("topic",)), SpaceRole("Learner", ())),
)
_FACTS = Facts(
    Scenario(7, {"topic": "Adding", "turns": "many"}, {"topic": {"grade": 4}}),
    Conversation(
        (
            Turn("Tutor", "What is 1/2 + 1/3?", ("Question",)),
            Turn("Learner", "It is two fifths!", ("Guess",)),
            Turn("Tutor", "Sorry, no.", ("Correction", "Hint")),
        ),
        ended_by="Tutor",
        flags=("loop",),
        outcome={"exercises": [{"solved": True}, {"solved": False}], "reason": {"id": 3}},
    ),
    "x-000007-r0",
    lambda layer, _: (
        4 if layer == "quality" else [("Tutor", "telling"), ("Learner", "guess"), ("Tutor", "telling")]
    ),
)


_LAYERS = {
    "quality": LabelledWith(find_label_set("quality"), whole=True),
    "moves": LabelledWith(make_inline_set("moves", {"telling": "says it", "guess": "tries"}), whole=False),
    "tone": None,
}


@pytest.mark.parametrize(
    "text",
    [
        "turns == 3 and turns.Tutor == 2 and turns.learner == 1 and participants == 2",
        "words == 16 - 1 and words.Learner == 4",
        "probability is None and ended_by == 'Tutor'",
        "'loop' in flags and len(repairs) == 0",
        "topic == 'Adding' and scenario.topic == 'Adding' and topic.grade == 4 and scenario.topic.grade >= 4",
        "scenario.turns == 'many' and scenario.index == 7",
        "'Hint' in actions and 'Hint' not in actions.Learner and count(actions.Tutor, 'Question') == 1",
        "'sorry' in lower(text.Tutor) and 'Sorry' not in text.Learner",
        "count(outcome.exercises.solved, True) == 1 and outcome.reason.id == 3 and outcome.nothing is None",
        "labels.quality >= 3 and 'telling' in labels.moves and 'telling' not in labels.moves.Learner",
        "count(labels.moves, 'telling') == 2 and near_duplicate is None",
    ],
)
def test_every_name_has_its_value(text: str) -> None:
    assert Expression(text, ConversationNames(_SPACE, _LAYERS)).holds(_FACTS)


@pytest.mark.parametrize(
    "name", ["labels.other", "turns.Teacher", "outcome", "scenario", "topic.level", "index.x"]
)
def test_other_names_are_not_there(name: str) -> None:
    with pytest.raises(ExpressionError, match=f"there is no {name} here"):
        Expression(f"{name} == 1", ConversationNames(_SPACE, _LAYERS))


def test_layers_are_known_by_their_names() -> None:
    names = ConversationNames(_SPACE, _LAYERS)
    assert list_named_layers(Expression("turns > 1 and labels.moves.Tutor is None", names).names) == (
        "moves",
    )


def test_what_labels_are_is_known_before_they_are_there() -> None:
    names = ConversationNames(_SPACE, _LAYERS)
    with pytest.raises(ExpressionError, match="this compares a number with a text"):
        Expression("labels.quality == 'good'", names)
    with pytest.raises(ExpressionError, match="use a list with `in`"):
        Expression("labels.moves >= 3", names)
    assert Expression("labels.tone >= 3 and 'x' not in labels.tone", names).notes == ()


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("'teling' not in labels.moves", "column 1: no labels.moves is 'teling' (did you mean 'telling'?)"),
        (
            "turns > 1 and 'Guess' in labels.moves.Learner",
            "column 15: no labels.moves.Learner is 'Guess' (did",
        ),
        (
            "count(labels.moves, 'guesses') < 2",
            "column 21: no labels.moves is 'guesses' (did you mean 'guess'?)",
        ),
        ("'telling' in labels.moves", None),
    ],
)
def test_a_label_that_a_set_has_not_is_noted(text: str, note: str | None) -> None:
    notes = Expression(text, ConversationNames(_SPACE, _LAYERS)).notes
    assert [note in one for one in notes if note] == [True] * bool(note)
    assert len(notes) == bool(note)


def test_labels_of_a_conversation_are_a_number_a_list_or_unknown() -> None:
    assert make_label_value([(None, None, ("4",))]) == 4
    assert make_label_value([(None, None, ("good",))]) == [("", "good")]
    assert make_label_value([(None, None, ())]) is None
    assert make_label_value([(0, "Tutor", ("a", "b")), (1, "Tutor", ()), (2, "Learner", ("3",))]) == [
        ("Tutor", "a"), ("Tutor", "b"), ("Learner", "3"),
    ]  # fmt: skip
    assert make_label_value([]) == []

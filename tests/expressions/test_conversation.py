"""The names that expressions have for one conversation."""

from __future__ import annotations

import pytest

from edgen.core.values import Conversation, Scenario, Turn
from edgen.expressions.conversation import ConversationNames, Facts, layers_named
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
    assert Expression(text, ConversationNames(_SPACE, ("quality", "moves"))).holds(_FACTS)


@pytest.mark.parametrize(
    "name", ["labels.other", "turns.Teacher", "outcome", "scenario", "topic.level", "index.x"]
)
def test_other_names_are_not_there(name: str) -> None:
    with pytest.raises(ExpressionError, match=f"there is no {name} here"):
        Expression(f"{name} == 1", ConversationNames(_SPACE, ("quality",)))


def test_layers_are_known_by_their_names() -> None:
    names = ConversationNames(_SPACE, ("quality", "moves"))
    assert layers_named([Expression("turns > 1 and labels.moves.Tutor is None", names)]) == ("moves",)

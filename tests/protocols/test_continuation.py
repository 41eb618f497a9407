"""A continued conversation: the prompt of each side, the requests, and the end."""

from __future__ import annotations

from typing import Any

from edgen.core.values import Conversation, Rejection, Reply, Request, Turn
from edgen.protocols.base import Rules
from edgen.protocols.selfplay import CLOSING_STEP, SELFPLAY, Selfplay
from edgen.protocols.stage import play_on
from tests.protocols.play import SCENARIO, play, prompts

GIVEN = (
    Turn("Teacher", "Light is where it begins."),
    Turn("Student", "Why light?"),
    Turn("Teacher", "Leaves catch it."),
)
SAID = ["And then?", "Sugar comes of it. [end of conversation]", "0.8"]


def go_on(
    answers: list[str], *, ended_by: str | None = None, given: tuple[Turn, ...] = GIVEN, **how: Any
) -> tuple[Conversation | Rejection, list[Request]]:
    """Continue with these answers; return the result and every request."""
    rules = Rules(asks=1, seed=7, settings=Selfplay(closing="student", **how))
    stage = SELFPLAY.stage(SCENARIO, prompts("student"), rules)
    protocol, given_answers, asked = play_on(stage, "r0@3.1", given, ended_by), iter(answers), []
    try:
        request = next(protocol)
        while True:
            asked.append(request)
            request = protocol.send(Reply(next(given_answers)))
    except StopIteration as end:
        return end.value, asked


def test_the_rest_is_asked_for_behind_the_turns_that_are_given() -> None:
    result, asked = go_on(SAID)
    assert isinstance(result, Conversation)
    assert result.turns == (*GIVEN, Turn("Student", "And then?"), Turn("Teacher", "Sugar comes of it."))
    assert (result.probability, result.ended_by) == (0.8, "Teacher")
    assert [(one.address.task, one.address.step, one.role) for one in asked] == [
        ("r0@3.1", 3, "student"),
        ("r0@3.1", 4, "teacher"),
        ("r0@3.1", CLOSING_STEP, "student"),
    ]


def test_each_side_is_told_what_it_is_told_in_a_conversation_of_its_own() -> None:
    """The messages are exactly the same; only the seed differs."""
    _, asked = go_on(SAID)
    said = [turn.text for turn in GIVEN] + SAID
    _, whole = play(said, closing="student", asks=1)
    assert [one.messages for one in asked] == [one.messages for one in whole[3:]]
    assert not {one.seed for one in asked} & {one.seed for one in whole}
    secrets = {"teacher": SCENARIO["student_preference"], "student": SCENARIO["teacher_preference"]}
    for one in asked:
        assert secrets[one.role] not in " ".join(message.content for message in one.messages)


def test_where_the_last_turn_was_the_end_the_closing_question_alone_is_asked() -> None:
    result, asked = go_on(["0.3"], ended_by="Teacher")
    assert isinstance(result, Conversation)
    assert (result.turns, result.probability, result.ended_by) == (GIVEN, 0.3, "Teacher")
    assert [one.address.step for one in asked] == [CLOSING_STEP]


def test_where_there_is_no_room_for_another_turn_it_ends() -> None:
    result, asked = go_on(["0.3"], max_turns=3)
    assert isinstance(result, Conversation)
    assert (result.turns, result.ended_by) == (GIVEN, None)
    assert len(asked) == 1


def test_an_answer_that_is_no_turn_rejects_it() -> None:
    result, _ = go_on([""])
    assert isinstance(result, Rejection)

"""A turn cut off by a token limit: kept up to its last sentence, retried or rejected, as the job says."""

from __future__ import annotations

import msgspec
import pytest

from edgen.core.forms import turn_form
from edgen.core.values import Address, Conversation, Message, Rejection, Reply, Request
from edgen.protocols.base import Question, Rules
from edgen.protocols.selfplay import Selfplay
from edgen.protocols.session import CUT_OFF, ask_turn
from edgen.protocols.stage import PlayedTurn, Stage
from tests.protocols.play import SCENARIO, Answer, play, prompts


def stage(too_long: str = "cut", asks: int = 3) -> Stage:
    rules = Rules(asks=asks, seed=7, settings=Selfplay(max_turns=4), too_long=too_long)  # type: ignore[arg-type]
    return Stage(SCENARIO, prompts(), rules)


def cut(text: str) -> Reply:
    return Reply(text, "length")


def first_turn(*replies: Reply, too_long: str = "cut") -> tuple[PlayedTurn | Rejection, list[Request]]:
    """Return the teacher's first turn, and every request."""
    work = stage(too_long).speak(0, [])
    asked = [next(work)]
    for reply in replies:
        try:
            asked.append(work.send(reply))
        except StopIteration as end:
            return end.value, asked
    raise AssertionError("it wants more")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Plants eat light. They do so wi", "Plants eat light."),
        ('Teacher: "Plants eat light. They do', "Plants eat light."),
        ('{"text": "Plants eat light. They', "Plants eat light."),
        ('{"role": "Teacher", "text": "Plants eat light. Th', "Plants eat light."),
        ('```json\n{"text": "Plants eat light. Th', "Plants eat light."),
        ("Here's the teacher's next turn:\nPlants eat light. Th", "Plants eat light."),
        ("<think>\nWhat now. Hm.\n</think>\nPlants eat light. Th", "Plants eat light."),
        ("Plants eat light. [end of conv", "Plants eat light."),
        ("Plants eat light.\n[EN", "Plants eat light."),
        ("植物吃光。它们", "植物吃光。"),
    ],
)
def test_a_cut_turn_is_kept_up_to_its_last_sentence_with_a_flag(text: str, kept: str) -> None:
    said, asked = first_turn(cut(text))
    assert isinstance(said, PlayedTurn)
    assert (said.turn.text, said.flags, said.ended) == (kept, (CUT_OFF,), False)
    assert len(asked) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Plants eat li",
        '{"text": "Plants eat li',
        "Here's the teacher's next turn: Plan",
        "<think>Let me think. I should say tha",
        "<think>\nLet me think. I should",
        "[end of conv",
        "Plants eat light.\nStudent: I see. And wh",
        "Plants eat light. \n\nStudent: Why? Teach",
        '[{"role": "Teacher", "text": "Light."}, {"role": "Student", "text": "I see. An',
        "...",
        "",
    ],
)
def test_without_a_whole_sentence_of_its_own_it_is_retried(text: str) -> None:
    said, asked = first_turn(cut(text), Reply("Plants eat light."))
    assert isinstance(said, PlayedTurn)
    assert (said.turn.text, said.flags) == ("Plants eat light.", ())
    assert [request.max_tokens_scale for request in asked] == [1, 2]
    assert asked[1].retry_reason == "truncated"


def test_the_whole_end_marker_ends_the_conversation() -> None:
    said, _ = first_turn(cut("Plants eat light. [end of conversation]"))
    assert isinstance(said, PlayedTurn)
    assert (said.turn.text, said.ended) == ("Plants eat light.", True)


def test_a_job_may_retry_or_reject_instead() -> None:
    text = "Plants eat light. They do so wi"
    said, asked = first_turn(cut(text), Reply("Hello to all."), too_long="ask")
    assert isinstance(said, PlayedTurn)
    assert (said.turn.text, len(asked)) == ("Hello to all.", 2)
    rejected, asked = first_turn(cut(text), too_long="reject")
    assert isinstance(rejected, Rejection)
    assert (rejected.reason, len(asked)) == ("truncated", 1)
    # Other reasons are still retried.
    said, asked = first_turn(Reply(""), Reply("Hello to all."), too_long="reject")
    assert isinstance(said, PlayedTurn)


def test_one_cut_turn_flags_the_conversation_and_rejects_nothing() -> None:
    answers: list[Answer] = [Reply(f"This is turn number {n}.") for n in range(4)]
    answers[2] = cut("This is number 2, as was said. And th")
    result, _ = play(answers, max_turns=4)
    assert isinstance(result, Conversation)
    assert result.flags == (CUT_OFF,)
    assert result.turns[2].text == "This is number 2, as was said."


def test_what_is_kept_is_judged_as_any_turn_is() -> None:
    """The rest of a cut turn may be a loop, although the whole turn has none."""
    talk = stage()
    before = "This is said for the second time."
    work = talk.speak(0, [])
    next(work)
    with pytest.raises(StopIteration) as end:
        work.send(Reply(before))
    entries = [
        end.value.value,
        PlayedTurn(msgspec.structs.replace(end.value.value.turn, role="Student", text="Oh?")),
    ]
    work = talk.speak(0, entries)
    next(work)
    assert work.send(cut(f"{before} It is ne")).retry_reason == "truncated"


def test_a_turn_under_a_schema_is_read_in_its_form() -> None:
    seen: list[str] = []

    def read(reply: Reply) -> PlayedTurn | Rejection:
        seen.append(reply.text)
        return stage().hear("Teacher", [], _said(reply)) if reply.finish_reason == "stop" else _truncated()

    question = Question(Address(0, 0), (Message("user", "Speak."),), "selfplay", form=turn_form())
    work = ask_turn(question, Rules(asks=1, seed=1), read)
    next(work)
    with pytest.raises(StopIteration) as end:
        work.send(cut('{"text": "Plants eat light. They'))
    assert end.value.value.turn.text == "Plants eat light."
    assert seen[1:] == ["Plants eat light. They", "Plants eat light."]


def _said(reply: Reply):  # type: ignore[no-untyped-def]
    from edgen.reading.one_turn.reader import read_turn

    return read_turn(reply.text, "Teacher")


def _truncated() -> Rejection:
    from edgen.core.values import RejectionReason

    return Rejection(RejectionReason.TRUNCATED, "cut off")

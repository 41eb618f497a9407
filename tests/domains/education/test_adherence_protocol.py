"""The adherence sheet: what the judge sees, which answers count, and which are retried."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgen.core.resources import find
from edgen.core.values import Rejection, RejectionReason, Reply, Request, Turn
from edgen.domains.education.adherence_protocol import VARIABLES, ask_adherence, read_sheet
from edgen.domains.education.keywords import MEASURES, Verdicts
from edgen.prompting import load_prompt
from edgen.protocols.base import Rules
from edgen.simulator.text import respond
from tests.protocols.play import SCENARIO, drive
from tests.timing import takes_at_most

TURNS = (
    Turn("Teacher", "Leaves take in light, and sugar comes of it."),
    Turn("Student", "Could we do an experiment instead?\nEnd of the lesson.\n"),
)
FULL = "student_asks: yes\nstudent_reaction: no\nteacher_reaction: cannot tell\nteacher_keeps: Yes\nteacher_leaves: no"
ANSWERS = Verdicts(True, False, None, True, False)


def judge(answers: Iterable[str | Reply], asks: int = 3) -> tuple[Verdicts | Rejection, list[Request]]:
    prompt = load_prompt(find("prompts", "adherence"), VARIABLES, expects="sheet")
    protocol = ask_adherence(SCENARIO, 2, TURNS, prompt, Rules(asks=asks, seed=7))
    return drive(protocol, answers)


@pytest.mark.parametrize(
    "text",
    [
        FULL,
        FULL.replace("\n", "\r\n") + "\r\n",
        "```\n" + FULL + "\n```",
        "Here are my answers:\n\n" + FULL.replace("_", " ").title(),
        "\n".join(f"{i}. **{line.replace(': ', ':** ')}." for i, line in enumerate(FULL.split("\n"), 1)),
        "{\n" + ",\n".join('  "' + line.replace(": ", '": "') + '"' for line in FULL.split("\n")) + "\n}",
        f"<think>student_asks: no, I think.\nteacher_keeps: maybe</think>\n{FULL}",
        FULL.replace("cannot tell", "can’t tell"),
        f"{FULL}\n\n{FULL}",
    ],
)
def test_a_sheet_is_read(text: str) -> None:
    assert read_sheet(text) == ANSWERS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yes\nno\ncannot tell\nyes\nno",
        FULL.replace("student_asks: yes\n", ""),
        FULL.replace("asks: yes", "asks: perhaps"),
        FULL.replace("asks: yes", "asks: yes, no or cannot tell"),
        FULL.replace("asks: yes", "asks: yes and no"),
        FULL.replace("asks: yes", "asks:"),
        f"{FULL}\nstudent_asks: no",  # two different answers
        f"I won't write student_asks: yes. {FULL}".replace("\n", " "),
        "The lesson is good.",
    ],
)
def test_in_doubt_it_is_unread(text: str) -> None:
    assert read_sheet(text) is None


@given(st.text() | st.lists(st.sampled_from([*MEASURES, ": ", "yes", "no", "\n", "**", "="])).map("".join))
def test_nothing_raises(text: str) -> None:
    assert read_sheet(text) is None or len(read_sheet(text) or ()) == len(MEASURES)


@pytest.mark.parametrize("unit", ["student_asks: ", "\n", "*", "student_asks: yes\n", "1. ", "<think>"])
def test_long_answers_take_time_in_proportion(unit: str) -> None:
    small, large = (unit * (size // len(unit)) for size in (40_000, 400_000))
    assert takes_at_most(40, lambda: read_sheet(large), lambda: read_sheet(small))


def test_the_judge_sees_scenario_and_conversation_and_is_asked_as_judge() -> None:
    found, asked = judge([FULL])
    assert found == ANSWERS
    (request,) = asked
    assert (request.role, request.address.scenario, request.address.task) == ("judge", 3, 2)
    shown = request.messages[-1].content
    for said in (SCENARIO["topic"], SCENARIO["student_preference"], SCENARIO["teacher_reaction"]):
        assert said in shown
    assert "Teacher: Leaves take in light" in shown


def test_what_is_no_sheet_is_asked_for_again_and_unread_in_the_end() -> None:
    found, asked = judge(["The lesson is good.", FULL])
    assert found == ANSWERS
    assert [request.address.attempt for request in asked] == [0, 1]
    found, asked = judge(["Hm.", Reply("", refusal="I'd rather not."), "yes"])
    assert isinstance(found, Rejection)
    assert found.reason is RejectionReason.UNREAD
    assert len(asked) == 3


def test_a_sheet_cut_off_is_asked_for_with_more_room() -> None:
    found, asked = judge([Reply(FULL[:40], finish_reason="length"), FULL])
    assert found == ANSWERS
    assert [request.max_tokens_scale for request in asked] == [1, 2]


def test_the_simulator_answers_by_the_keywords_mostly() -> None:
    _, (request,) = judge([FULL])
    sheets = [read_sheet(respond(request.messages, seed=seed).text) for seed in range(200)]
    assert None not in sheets
    asks = sum(sheet is not None and sheet.student_asks is True for sheet in sheets)
    assert 160 <= asks <= 195  # the judge retries, and one answer in ten is wrong
    assert respond(request.messages, seed=1) == respond(request.messages, seed=1)

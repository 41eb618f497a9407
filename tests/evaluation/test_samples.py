"""The measures mentioned, recited and echoes, on spaces that are not shipped."""

from __future__ import annotations

from typing import Any

import pytest

from edgen.core.values import Scenario, Turn
from edgen.evaluation.sample import Sample
from edgen.families.dialogue import DIALOGUE
from edgen.space import parse_space
from tests.cases import named
from tests.evaluation.said import count_of, lesson, measured

pytestmark = pytest.mark.unit

SPACE = parse_space(
    """name: clinic
dimensions:
  complaint: [{value: a sore knee, example: "it hurts on stairs, at 7 of 10", code: M25, kind: joint}, a cough]
  advice: [{value: rest and ice packs, lines: [twice a day for ten minutes, with a towel around it]}]
  tone: {label: How you talk, values: [polite, in a terrible hurry today]}
roles:
  Doctor: {sees: [advice]}
  Patient: {sees: [complaint, tone]}
""",
    "s",
)


def talk(*lines: str, tone: str = "in a terrible hurry today") -> Sample:
    roles = {"D": "Doctor", "P": "Patient"}
    values = {"complaint": "a sore knee", "advice": "rest and ice packs", "tone": tone}
    fields: dict[str, dict[str, Any]] = {
        name: SPACE[name].find_entry(values[name]).fields for name in ("complaint", "advice")
    }
    turns = tuple(Turn(roles[line[0]], line[2:]) for line in lines)
    return Sample(
        id="0", source="t", split=None, scenario=Scenario(0, values, fields), turns=turns, entries=len(turns)
    )


def found(measure: str, *samples: Sample) -> Any:
    return measured(count_of(measure, family=DIALOGUE, roles=SPACE.roles, find_space=lambda: SPACE), *samples)


@named(
    "lines, share, missing",
    nothing=(("P Hello.", "D Hello."), 0, ["complaint", "complaint.example", "complaint.code", "advice", "advice.lines"]),
    a_value=(("P My knees are sore.",), 0.2, ["complaint.example", "complaint.code", "advice", "advice.lines"]),
    a_fact=(("P On stairs it hurts.",), 0.2, ["complaint", "complaint.code", "advice", "advice.lines"]),
    one_of_a_list=(("D Put a towel around it.",), 0.2, ["complaint", "complaint.example", "complaint.code", "advice"]),
    all_of_it=(
        ("P A sore knee, on stairs it hurts.", "D M25. Rest, with ice packs, ten minutes twice a day."), 1, []
    ),
    a_word_of_three=(("D Packs?",), 0, ["complaint", "complaint.example", "complaint.code", "advice", "advice.lines"]),
)  # fmt: skip
def test_what_is_mentioned(lines: tuple[str, ...], share: float, missing: list[str]) -> None:
    result = found("mentioned", talk(*lines))
    assert result.share.value == pytest.approx(share)
    assert sorted(result.never) == sorted(missing)


@named(
    "lines, tone, turns",
    none=(("P I have to be quick.",), "in a terrible hurry today", 0),
    word_for_word=(("P I am, in a terrible hurry, today.", "D Oh."), "in a terrible hurry today", 1),
    twice=(("P In a terrible hurry today!", "P in a terrible hurry today"), "in a terrible hurry today", 2),
    a_label=(("P My knee. How you talk: polite.",), "polite", 1),
    a_word_by_itself=(("P You are very polite.",), "polite", 0),
)
def test_what_recites(lines: tuple[str, ...], tone: str, turns: int) -> None:
    result = found("recited", talk(*lines, tone=tone))
    assert result.turns == turns
    assert result.by == ({"tone": 1} if turns else {})


@named(
    "lines, echoes",
    no_echo=(("D Does it hurt on stairs?", "P Yes, it does."), 0),
    echo=(("D The main idea is exactly right.", "P I think the main idea is exactly right."), 1),
    own_words=(("P The main idea is exactly right.", "P The main idea is exactly right."), 0),
    of_three_turns_ago=(("D Use the ice packs twice.", "P Yes.", "D Good.", "P Use the ice packs twice?"), 1),
    a_part=(
        ("D Use the ice packs twice.", "P Fine, to use the ice packs twice is what I had planned to do."),
        0,
    ),
    short=(("D All right then.", "P All right then."), 0),
)
def test_what_echoes(lines: tuple[str, ...], echoes: int) -> None:
    result = found("echoes", talk(*lines))
    assert result.share.value == echoes / len(lines)
    assert result.turns == len(lines)


def test_data_of_unknown_space_and_none_at_all() -> None:
    result = measured(count_of("mentioned"), lesson("T Let us talk about rivers.", "S Yes."))
    assert result.share.value == 1
    assert (
        measured(count_of("recited"), lesson("T One who gets rude.", "S and gets rude otherwise")).turns == 1
    )
    for name in ("mentioned", "recited", "echoes"):
        assert found(name).share is None

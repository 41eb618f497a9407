"""Answer-giving: how often a student who asks for the answer gets it.

A turn of the student asks if it contains one of the phrases below. It gets the answer if the next turn is the
teacher's, states something about the subject and asks nothing back (`has_statement` and
`has_question` in `keywords`).
Intervals are those of `stats.intervals`, clustered by scenario.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgen.domains.education.keywords import KeywordIndex, has_question, has_statement
from edgen.plugin import Measure, Sample, Share, Space, Total, Turn, Words, figure_kinds
from edgen.plugin.measures import Panel

_REQUESTS = KeywordIndex(
    "just tell me|just tell us|just told me|just tell it|just explain|just teach|just give me|just give "
    "us|just say it"
    "|tell me the answer*|tell us the answer*|give me the answer*|give us the answer*|what is the answer"
    "|what's the answer|what is the solution|what's the solution|show me the solution|give me the solution"
    "|tell me what it is|simply tell me|can you tell me the|could you tell me the|tell me already|tell me "
    "about"
    "|want you to tell|want you to just|want you to explain|want you to give|rather you told|rather you just"
    "|you just explain|you just tell|you simply tell|you just teach|can't you explain|can you explain|could "
    "you explain"
    "|please explain|explain it to me|explain it to us|need you to explain|hear it from you|what do i need "
    "to know|what i need to know"
)


class AnswersMeasure(Measure[Any]):
    name = "answers"
    definition = (
        "Student turns that ask for the answer, and those whose next teacher turn gives it without asking "
        "back; telling: teacher turns without a question. edgen's own, by keywords; related to the telling "
        "rate of MathDial (Macina et al. 2023, arXiv 2305.14536)."
    )
    order = 10
    section = "behaviour"
    figures = figure_kinds("asked", "given", "telling")
    aggregates = (
        Total("asked", label="student asks for it", says="{asked:turn}"),
        Total("given"),
        Share("rate", "given", "asked", label="teacher gives it", says="{given} = {rate}", title="Gives the "
        "answer when asked"),
        Share("telling", "telling", "taught", label="teacher tells", says="{telling} without a question",
            title="Teacher's turns without a question"),
    )  # fmt: skip
    panels = (
        Panel(
            "answers",
            "Giving the answer",
            ("rate", "telling"),
            "Look for a teacher that tells more often than it asks.",
        ),
    )
    compares = ()  # further tests would raise the adjusted p-values of the present ones

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Any]:
        """Count the turns that ask for the answer and those that get it, the teacher's turns and those
        without a question."""
        asked = given = taught = telling = 0
        for number, turn in enumerate(sample.turns):
            if turn.role == "Teacher":
                taught += 1
                telling += "?" not in turn.text
            elif _REQUESTS.has_match(words.spoken[number]):
                asked += 1
                given += _is_answered(sample.turns, number + 1)
        return {"asked": asked, "given": given, "taught": taught, "telling": telling}


def _is_answered(turns: Sequence[Turn], number: int) -> bool:
    """Return whether turn `number` is the teacher's and states something without asking back."""
    if number >= len(turns) or turns[number].role != "Teacher":
        return False
    text = turns[number].text
    return has_statement(text) and not has_question(text)


MEASURE = AnswersMeasure()

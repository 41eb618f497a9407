"""A judge that scores one conversation by the criteria of a rubric, in one call.

The answer is a JSON object with a number from 0 to 10 for each criterion; any other answer is retried and in
the end counts as unreadable. The conversation is fenced as for a judge of two (see `edgen.protocols.fence`).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import msgspec

from edgen.plugin import (
    Address,
    AnswerKind,
    Prompting,
    Question,
    Rejection,
    Reply,
    Request,
    Rules,
    Scenario,
    SimulatedAnswers,
    Simulation,
    Space,
    Template,
    Turn,
    ask,
    scenario_variables,
    template_variables,
)
from edgen.plugin.answers import MOST_SCORE, read_scores
from edgen.plugin.forms import form_of, whole_number
from edgen.plugin.protocols import Protocol, TaskId, describe_space, fence_turns, unread

# Variables of a rubric's template besides the scenario; it must show `SHOWN`.
SHOWN = ("guarded", "criteria", "form")
VARIABLES = (*SHOWN, "fence", "space_roles", "space_goal", "scenario_lines")
_SAID = 200  # characters kept of an unreadable answer


class Criterion(msgspec.Struct, frozen=True):
    """A criterion of the score: a name, a sentence for the judge, and a weight."""

    name: str
    says: str
    weight: float = 1.0


class RubricProtocol(SimulatedAnswers, Protocol):
    """A judge with a rubric."""

    name = "rubric"
    precedence = 15
    answers = (
        AnswerKind(
            "scores",
            "a JSON object with a number from 0 to 10 for each criterion of a rubric",
            VARIABLES,
            of_scenario=True,
        ),
    )

    def template(self, name: str, space: Space) -> Template:
        """Return the judge's template."""
        return Template(
            name=name,
            key="the rubric's template",
            expects="scores",
            variables=(*template_variables(space), *VARIABLES),
            shows=(SHOWN,),
            why="a judge with a rubric",
            asked="judge",
        )

    def simulated(self, request: Simulation) -> str | None:
        """Return the scores."""
        return request.scores()


RUBRIC = RubricProtocol()


class Judged(msgspec.Struct, frozen=True):
    """A conversation to score; `task` identifies it among those of its scenario."""

    space: Space
    scenario: Scenario
    task: TaskId
    turns: Sequence[Turn]


def score_by_rubric(
    judged: Judged, criteria: Sequence[Criterion], prompt: Prompting, rules: Rules
) -> Generator[Request, Reply, dict[str, float] | Rejection]:
    """Yield a request per ask. Return the score of each criterion, in [0, 1], or a rejection."""
    scenario, names = judged.scenario, [criterion.name for criterion in criteria]
    variables = {
        **scenario_variables(scenario),
        **describe_space(judged.space, scenario),
        **fence_turns(rules.seed, scenario.index, judged.task, judged.turns),
        "criteria": "\n".join(f"- {criterion.name}: {criterion.says}" for criterion in criteria),
        "form": msgspec.json.encode(dict.fromkeys(names, 0)).decode(),
    }
    form = prompt.form(form_of(dict.fromkeys(names, whole_number(0, MOST_SCORE))))
    address = Address(scenario.index, judged.task)
    question = Question(address, prompt.messages(variables), RUBRIC.name, "judge", prompt.schema, form=form)
    return (yield from ask(question, rules, lambda reply: _read(reply, names)))


def _read(reply: Reply, names: Sequence[str]) -> dict[str, float] | Rejection:
    scores = None if reply.refusal else read_scores(reply.text, names)
    if scores is not None:
        return {name: score / MOST_SCORE for name, score in scores.items()}
    return unread(reply, (reply.refusal or reply.text)[:_SAID])

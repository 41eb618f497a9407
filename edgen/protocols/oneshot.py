"""One prompt plays both sides, as Education Dialogue was made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from edgen.config import Job
from edgen.core.answer_kinds import AnswerKind
from edgen.core.values import Address, Conversation, Message, Rejection, Reply, Scenario
from edgen.prompting import scenario_variables
from edgen.protocols.base import (
    ConversationProtocol,
    Conversing,
    ExpectedCall,
    Prompting,
    Question,
    Rules,
    Simulation,
    Starter,
    Template,
    ask,
)
from edgen.reading import read
from edgen.space.education import EDUCATION_VARIABLES, template_variables
from edgen.space.model import Space

_TOKENS = (150.0, 400.0, 1200.0)  # of a whole conversation: low, expected, high


class NoSettings(msgspec.Struct, frozen=True, kw_only=True):
    """There is nothing to set."""


class Oneshot(ConversationProtocol):
    """A prompt for the whole conversation."""

    name = "oneshot"
    precedence = 90  # a prompt that asks for a conversation may hold anything
    answers = (
        AnswerKind(
            "conversation",
            "a whole conversation by both sides, and the probability that the student understood",
            EDUCATION_VARIABLES,
        ),
    )
    Config = NoSettings
    sends_schemas = True
    starter = Starter(
        "quickstart", {"prompt.j2": "education_dialogue"}, "default", "one prompt plays both sides"
    )
    about_leaks = (
        "Where one prompt writes both sides (oneshot), the writer knows both descriptions: a leak is its slip, "
        "which a student or a teacher could not make."
    )

    def templates(self, job: Job, space: Space | None) -> dict[str, Template]:
        """The one template, which sees all of a scenario."""
        variables = () if space is None else template_variables(space)
        return {
            "default": Template(
                name=job.prompt,
                key="prompt",
                expects="conversation",
                variables=variables,
                reports=variables[1:],  # the index says nothing to a model
            )
        }

    def start(
        self, scenario: Scenario, replicate: int, prompts: Mapping[str, Prompting], rules: Rules
    ) -> Conversing:
        """Yields one request per ask; returns the first conversation, or the last rejection."""

        def read_reply(reply: Reply) -> Conversation | Rejection:
            return read(reply.text, **rules.reading(reply))

        messages = self.opening(scenario, prompts, rules)["default"]
        address = Address(scenario.index, replicate)
        question = Question(address, messages, self.name, schema=prompts["default"].schema)
        return (yield from ask(question, rules, read_reply))

    def opening(
        self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules
    ) -> dict[str, tuple[Message, ...]]:
        """The one prompt."""
        return {"default": prompts["default"].messages(scenario_variables(scenario))}

    def expected(self, job: Job, level: int) -> tuple[ExpectedCall, ...]:
        """One call."""
        return (ExpectedCall("default", "default", _TOKENS),)

    def caveats(self, settings: Any) -> Iterator[str]:
        """What the writer knew."""
        yield "One prompt plays all roles: whoever wrote a turn knew what only the other roles see."

    def simulated(self, request: Simulation) -> str | None:
        """A conversation as the prompt describes it."""
        return request.conversation()


ONESHOT = Oneshot()

"""A protocol: the teacher explains, and the student repeats it in other words. Two requests."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from edgen.plugin import (
    Address,
    AnswerKind,
    Conversation,
    ConversationProtocol,
    ExpectedCall,
    Job,
    Message,
    Prompting,
    Question,
    Rejection,
    Reply,
    Request,
    RolesAndSettings,
    Rules,
    Scenario,
    SelfDescription,
    SimulatedAnswers,
    Simulation,
    Space,
    Template,
    Turn,
    ask,
    scenario_variables,
    settings_of,
    template_variables,
)  # fmt: skip

_HERE = Path(__file__).parent


class TeachBackSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The job's key `teach_back`."""

    sentences: Annotated[int, msgspec.Meta(ge=1, le=20)] = 3
    """Length of each contribution, in sentences."""


class TeachBack(RolesAndSettings, SelfDescription, SimulatedAnswers, ConversationProtocol):
    name = "teach_back"
    Config = TeachBackSettings
    answers = (AnswerKind("taught_turn", "what is explained, or said back", ("sentences", "explanation")),)

    def roles(self, job: Job) -> tuple[str, ...]:
        return ("teacher", "student")

    def templates(self, job: Job, space: Space | None) -> dict[str, Template]:
        known = () if space is None else (*template_variables(space), "sentences")
        texts = {"explain": known, "say_back": (*known, "explanation") if known else ()}
        return {
            use: Template(
                name=job.prompts.get(use), key=f"prompts.{use}", file=_HERE / f"{use}.j2", expects="taught_turn",
                variables=variables, asked="teacher" if use == "explain" else "student",
            )
            for use, variables in texts.items()
        }  # fmt: skip

    def opening(
        self, scenario: Scenario, prompts: Mapping[str, Prompting], rules: Rules
    ) -> dict[str, tuple[Message, ...]]:
        known = {**scenario_variables(scenario), "sentences": rules.settings.sentences}
        said_back = prompts["say_back"].messages({**known, "explanation": "…"})
        return {"explain": prompts["explain"].messages(known), "say_back": said_back}

    def start(
        self, scenario: Scenario, replicate: int, prompts: Mapping[str, Prompting], rules: Rules
    ) -> Generator[Request, Reply, Conversation | Rejection]:
        known = {**scenario_variables(scenario), "sentences": rules.settings.sentences}
        turns: list[Turn] = []
        for step, (role, use) in enumerate((("Teacher", "explain"), ("Student", "say_back"))):
            messages = prompts[use].messages({**known, "explanation": turns[0].text if turns else ""})
            turn = yield from self._turn(
                role,
                Question(Address(scenario.index, replicate, step), messages, self.name, role.lower()),
                rules,
            )
            if isinstance(turn, Rejection):
                return turn
            turns.append(turn)
        return Conversation(tuple(turns))

    def _turn(
        self, role: str, question: Question, rules: Rules
    ) -> Generator[Request, Reply, Turn | Rejection]:
        def read(reply: Reply) -> Turn | Rejection:
            text = reply.text.strip()
            return Turn(role, text) if text else Rejection("empty", f"the {role.lower()} says nothing")

        return (yield from ask(question, rules, read))

    def expected(self, job: Job, level: int) -> tuple[ExpectedCall, ...]:
        tokens = tuple(20.0 * settings_of(job).sentences * factor for factor in (0.5, 1.0, 2.0))
        return (
            ExpectedCall("teacher", "explain", tokens, heard=True),
            ExpectedCall("student", "say_back", tokens, hears=True),
        )

    def role_of(self, job: Job, step: int) -> str:
        return "student" if step else "teacher"

    def caveats(self, settings: TeachBackSettings) -> Iterator[str]:
        yield "Each conversation is one explanation and one answer to it."

    def simulated(self, request: Simulation) -> str | None:
        prompt = request.messages[-1].content
        if prompt.startswith("Say back in your own words"):
            return "So the parts belong together, and each of them has its place. Is that right?"
        return (
            "It has three parts, and each of them has its place."
            if prompt.startswith("Explain to a student")
            else None
        )


PROTOCOL = TeachBack()

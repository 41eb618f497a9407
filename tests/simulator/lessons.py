"""Self-play, closing questions and comparisons with the shipped templates, by a loop of a few lines.

The simulator knows the protocol and role, as in a run; `test_routing` proves that a served one finds them
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import Any, Literal

from edgen.core import resources
from edgen.core.values import END_MARKER, Message, Reply, Role
from edgen.prompting import Prompt, load_prompt, scenario_variables
from edgen.simulator.faults import NO_FAULTS, Faults
from edgen.simulator.text import respond
from edgen.space import load_space
from edgen.space.sampling import Sampler
from tests.simulator.prompts import LEARNING, STUDENT_REACTIONS, TEACHER_REACTIONS, TEACHING

Said = list[tuple[Role, str]]
COMMON = ("topic", "subject", "level")
VARIABLES = {
    "selfplay_teacher": (*COMMON, "teacher_preference", "teacher_reaction"),
    "selfplay_student": (*COMMON, "student_preference", "student_reaction"),
    "closing_student": COMMON,
    "closing_judge": (*COMMON, "conversation"),
    "oracle_conversation": (*COMMON, "conversation_1", "conversation_2"),
    "oracle_guarded": (*COMMON, "compare", "fence", "guarded", "guarded_1", "guarded_2"),
    "oracle_response": (*COMMON, "conversation", "response_1", "response_2"),
}


@cache
def template(name: str) -> Prompt:
    return load_prompt(resources.find("prompts", name), VARIABLES[name])


def scenarios(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Return scenarios of both shipped spaces, as many of each."""
    found = []
    for name in ("education_dialogue", "broad"):
        sampler = Sampler(load_space(resources.find("preference_space", name)), seed, "random")
        found += [dict(scenario_variables(sampler.scenario(i))) for i in range(count // 2)]
    return found


def variables(
    learning: str = LEARNING[2],
    student_reaction: str = STUDENT_REACTIONS[0],
    teaching: str = TEACHING[0],
    teacher_reaction: str = TEACHER_REACTIONS[4],
) -> dict[str, Any]:
    """Return a scenario on irony."""
    return {
        "topic": "Irony",
        "subject": None,
        "level": None,
        "student_preference": learning,
        "student_reaction": student_reaction,
        "teacher_preference": teaching,
        "teacher_reaction": teacher_reaction,
    }


def other(role: Role) -> Role:
    return "Student" if role == "Teacher" else "Teacher"


def messages(
    variables: dict[str, Any], said: Sequence[tuple[Role, str]], first: Role = "Teacher"
) -> tuple[Message, ...]:
    """Return the messages for the side whose turn it is."""
    role = first if len(said) % 2 == 0 else other(first)
    brief = template(f"selfplay_{role.lower()}").messages(variables)
    head = brief if role == first else brief[:1]
    return (*head, *[Message("assistant" if who == role else "user", text) for who, text in said])


def turn(
    variables: dict[str, Any], said: Said, seed: int, faults: Faults = NO_FAULTS, first: Role = "Teacher"
) -> Reply:
    asked = messages(variables, said, first)
    return respond(asked, seed=seed * 64 + len(said), faults=faults, protocol="selfplay")


def play(
    variables: dict[str, Any],
    seed: int,
    faults: Faults = NO_FAULTS,
    first: Role = "Teacher",
    start: Said | None = None,
) -> tuple[Said, Role | None]:
    """Return a conversation without the end marker, and the role that wrote the marker."""
    said = list(start or [])
    while len(said) < 20:
        role = first if len(said) % 2 == 0 else other(first)
        text = turn(variables, said, seed, faults, first).text
        if text.endswith(END_MARKER):
            return [*said, (role, text.removesuffix(END_MARKER).strip())], role
        said.append((role, text))
    return said, None


def shown(said: Sequence[tuple[Role, str]]) -> str:
    return "\n".join([f"{role}: {text}" for role, text in said])


def closing(variables: dict[str, Any], said: Said) -> tuple[Message, ...]:
    """Return the closing question to the student, after the last turn that it heard."""
    history = [*messages(variables, [], "Student")[:1]]
    for role, said_text in [*said, ("Teacher", template("closing_student").messages(variables)[0].content)]:
        who: Literal["user", "assistant"] = "assistant" if role == "Student" else "user"
        text = f"{history.pop().content}\n\n{said_text}" if history[-1].role == who else said_text
        history.append(Message(who, text))
    return tuple(history)


def self_judged(variables: dict[str, Any], said: Said, seed: int, planted: int | None = None) -> str:
    return respond(closing(variables, said), seed=seed, planted=planted, protocol="selfplay").text


def samples() -> list[tuple[Message, ...]]:
    """Return a request of each kind: first turn, later turns, closing question, comparison."""
    known = scenarios(2)[0]
    said, other_said = play(known, 1)[0], play(known, 2)[0]
    values = {"conversation_1": shown(said), "conversation_2": shown(other_said)}
    return [
        messages(known, []),
        messages(known, said[:5]),
        messages(known, said[:6]),
        closing(known, said),
        template("oracle_conversation").messages(values),
    ]


def judged(topic: str, said: Said, seed: int, planted: int | None = None) -> str:
    asked = template("closing_judge").messages({"topic": topic, "conversation": shown(said)})
    return respond(asked, seed=seed, planted=planted, protocol="selfplay").text


def compared(first: str, second: str, seed: int, faults: Faults = NO_FAULTS) -> str:
    asked = template("oracle_conversation").messages({"conversation_1": first, "conversation_2": second})
    return respond(asked, seed=seed, faults=faults, protocol="oracle").text


def pairs(texts: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Return all pairs within each group."""
    return [pair for group in texts for pair in combinations(group, 2)]

"""Protocols driven by a list or a function of replies, requests kept: no network, no ledger."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

from edgen.config import Branch
from edgen.core.errors import CallError
from edgen.core.resources import find
from edgen.core.values import Conversation, Rejection, Reply, Request, Scenario
from edgen.prompting import Prompt, load_prompt
from edgen.protocols.base import Rules
from edgen.protocols.selfplay import SELFPLAY, Selfplay
from tests.scenarios import DEFAULT_VARIABLES, ROLES, TOPIC_FIELDS, scenario_of

SCENARIO = scenario_of(
    3,
    "photosynthesis",
    "hands-on work/experiments",
    "and loses focus otherwise",
    "lecturing from the front",
    "and keeps to the plan anyway",
)
Answer = str | Reply | CallError
T = TypeVar("T")
# The variables of each template: the facts of its role, and all of a scenario for the judge.
VARIABLES = {
    "teacher": ("index", *ROLES[0].sees, *TOPIC_FIELDS),
    "student": ("index", *ROLES[1].sees, *TOPIC_FIELDS),
    "closing_student": ("index", *ROLES[1].sees, *TOPIC_FIELDS),
    "closing_judge": (*DEFAULT_VARIABLES, "conversation"),
}


def prompts(closing: str | None = None) -> dict[str, Prompt]:
    """Return the shipped templates of selfplay."""
    found = {
        side: load_prompt(find("prompts", f"selfplay_{side}"), VARIABLES[side])
        for side in ("teacher", "student")
    }
    if closing is not None:
        name = f"closing_{closing}"
        found["closing"] = load_prompt(find("prompts", name), VARIABLES[name])
    return found


def play(
    answers: Iterable[Answer] | Callable[[Request], Answer],
    *,
    scenario: Scenario = SCENARIO,
    replicate: int = 0,
    templates: dict[str, Prompt] | None = None,
    asks: int = 3,
    branch: Branch | None = None,
    **how: Any,
) -> tuple[Conversation | Rejection, list[Request]]:
    """Run selfplay to its end; return its result and every request."""
    rules = Rules(asks=asks, seed=7, settings=Selfplay(**how), branch=branch)
    protocol = SELFPLAY.start(scenario, replicate, templates or prompts(how.get("closing")), rules)
    return drive(protocol, answers)


def drive(
    protocol: Generator[Request, Any, T], answers: Iterable[Answer] | Callable[[Request], Answer]
) -> tuple[T, list[Request]]:
    """Run a protocol to its end; return its result and every request."""
    given = None if callable(answers) else iter(answers)
    asked: list[Request] = []
    step: Any = None
    send = protocol.send
    try:
        while True:
            request = send(step)
            asked.append(request)
            answer = answers(request) if callable(answers) else next(given)  # type: ignore[arg-type]
            send = protocol.throw if isinstance(answer, CallError) else protocol.send  # type: ignore[assignment]
            step = Reply(answer) if isinstance(answer, str) else answer
    except StopIteration as end:
        return end.value, asked

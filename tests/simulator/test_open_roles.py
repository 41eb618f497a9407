"""The simulator plays custom roles and dimensions, the same with and without the protocol's name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgen.core.values import Request, Status
from edgen.planning.load import load_plan
from edgen.planning.plan import Plan
from edgen.protocols.parts import Settled, Spent
from edgen.simulator.prompts.conversation_prompt import assign_roles, find_shown_roles, is_teaching_role
from edgen.simulator.text import respond
from tests import open_space

pytestmark = pytest.mark.unit


def run(plan: Plan, index: int) -> Settled:
    """Return one conversation, each request answered by the embedded simulator and by a served one."""
    task = plan.make_task(index, 0)
    spent = Spent()
    try:
        request: Request = next(task.protocol)
        while True:
            reply = respond(request.messages, seed=request.seed, protocol=request.protocol)
            assert reply == respond(request.messages, seed=request.seed)
            assert reply.simulated
            spent.add(reply, b"key", request, "simulator", "edgen-simulator")
            request = task.protocol.send(reply)
    except StopIteration as end:
        return task.settled(end.value, spent)


def records(plan: Plan, count: int) -> Iterator[dict[str, object]]:
    for index in range(count):
        settled = run(plan, index)
        assert settled.status is Status.ACCEPTED, settled
        assert settled.record is not None
        yield json.loads(settled.record)


@pytest.mark.parametrize(("roles", "more"), [(2, 0), (3, 8)])
def test_selfplay(tmp_path: Path, roles: int, more: int) -> None:
    space = open_space.tutoring(roles, more)
    plan = load_plan(
        open_space.write(tmp_path, space, selfplay={"closing": "learner", "first": "learner"}), []
    )
    for record in records(plan, 8):
        names = [role.name for role in space.roles]
        assert record["roles"] == names[1:] + names[:1]
        assert 6 <= len(record["conversation"]) <= 9  # type: ignore[arg-type]
        assert record["ended_by"] in names
        assert 0 < record["probability"] < 1  # type: ignore[operator]
        assert [*record["scenario"]] == [*space.names]  # type: ignore[misc]
        assert record["provenance"]["simulated"] is True  # type: ignore[index]


UNKNOWN = {
    "unknown": "Your part: {role}. What you know:\n{shown}\nReply with a single utterance.",
    "tiny": "Now: {role}.",
}


@pytest.mark.parametrize("form", UNKNOWN)
def test_three_roles_talk_long_by_prompts_that_are_no_known_ones(tmp_path: Path, form: str) -> None:
    space = open_space.tutoring(3)
    path = open_space.write(tmp_path, space, selfplay={"max_turns": 24})
    for role in space.roles:
        shown = "\n".join(f"- {name}: {{{{ {name} }}}}" for name in role.sees)
        brief = UNKNOWN[form].format(role=role.name, shown=shown)
        text = f"{{% block system %}}\n{brief}\n{{% endblock %}}\n{{% block user %}}\nGo.\n{{% endblock %}}\n"
        (tmp_path / f"{role.name.lower()}.j2").write_text(text)
    for record in records(load_plan(path, []), 20):
        assert len(record["conversation"]) == 24  # type: ignore[arg-type]


PUBLISHED = """Simulate a conversation between {roles} about {{{{ topic }}}} ({{{{ topic.grade }}}}). {{{{ learner }}}}
The conversation lasts 6-9 turns and ends with [end of conversation]. Output it in the following format.
Conversation:
[
{lines}
]
Probability:  "...",
"""
JSON = """Write a conversation between {roles} about {{{{ topic }}}}.
End it with [end of conversation]. Answer with JSON:
{{"conversation": [{parts}], "probability": 0.5}}
"""


@pytest.mark.parametrize("form", [PUBLISHED, JSON], ids=["published", "json"])
@pytest.mark.parametrize("roles", [2, 3])
def test_oneshot(tmp_path: Path, form: str, roles: int) -> None:
    space = open_space.tutoring(roles)
    names = [role.name for role in space.roles]
    lines = "\n".join(f'   {name}:  "...",' for name in names)
    parts = ", ".join(f'{{"role": "{name}", "text": "..."}}' for name in names)
    template = form.format(roles=" and ".join(names), lines=lines, parts=parts)
    path = open_space.write(tmp_path, space, protocol="oneshot", prompt="./one.j2", prompts={})
    (tmp_path / "one.j2").write_text(template)
    for record in records(load_plan(path, []), 8):
        assert {*record["roles"]} == {*names}  # type: ignore[misc]
        assert isinstance(record["probability"], float)


def test_who_leads() -> None:
    assert [is_teaching_role(name) for name in ("Tutor", "Examiner", "Learner2")] == [True, True, False]
    spoken = [("Teacher", "a"), ("Student", "b")] * 2
    assert [role for role, _ in assign_roles(spoken, ("Ann", "Ben", "Cy"))] == ["Ann", "Ben", "Ann", "Cy"]
    assert [role for role, _ in assign_roles(spoken, ("Learner", "Tutor"))] == ["Tutor", "Learner"] * 2
    assert find_shown_roles("Nothing is shown.") == ()
    assert find_shown_roles('Ann: "..."\nBen: "..."') == ("Ann", "Ben")

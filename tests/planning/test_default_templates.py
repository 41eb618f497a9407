"""A space with its own roles needs no template: each role's prompt has only the facts that it sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgen.core import resources
from edgen.core.values import Status
from edgen.planning.load import load_plan
from edgen.planning.plan import Plan
from edgen.planning.unused_variables import find_unused
from tests import open_space
from tests.simulator.test_open_roles import run

pytestmark = pytest.mark.unit


def planned(folder: Path, protocol: str, roles: int = 2) -> Plan:
    path = open_space.write(folder, open_space.tutoring(roles), protocol=protocol, prompts={})
    return load_plan(path)


@pytest.mark.parametrize("roles", [2, 3])
@pytest.mark.parametrize("protocol", ["oneshot", "selfplay"])
def test_conversations_of_any_space_without_a_template(tmp_path: Path, protocol: str, roles: int) -> None:
    plan = planned(tmp_path, protocol, roles)
    assert find_unused(plan) == []
    for index in range(6):
        settled = run(plan, index)
        assert settled.status is Status.ACCEPTED, settled


def test_a_role_is_told_what_it_sees_and_nothing_else(tmp_path: Path) -> None:
    plan = planned(tmp_path, "selfplay", 3)
    scenario = plan.scenario(0)
    for role in plan.space.roles:
        text = "\n".join(message.content for message in plan.opening(scenario)[role.name.lower()])
        for name, value in scenario.values.items():
            assert (value in text) == (name in role.sees), (role.name, name)
        assert f"You are {role.name}, in a conversation with " in text
        assert (f"grade: {scenario.fields['topic']['grade']}" in text) == ("topic" in role.sees)


def test_one_prompt_says_everything_and_who_knows_it(tmp_path: Path) -> None:
    plan = planned(tmp_path, "oneshot", 3)
    scenario = plan.scenario(0)
    text = plan.opening(scenario)["default"][0].content
    assert all(value in text for value in scenario.values.values())
    assert (
        "- Tutor: topic, tutor style\n- Learner: topic, misconception, learner\n- Learner2: topic, learner"
        in text
    )
    assert "the probability that the Learner understood the material" in text


@pytest.mark.parametrize("space", resources.list_shipped("preference_space"))
def test_a_probability_is_asked_for_only_where_somebody_is_taught(space: str, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(
        f"name: any\nconversations: 2\nspace: {space}\nbackends: {{default: {{type: simulator}}}}\n"
    )
    plan = load_plan(tmp_path / "job.yaml")
    text = plan.opening(plan.scenario(0))["default"][0].content
    taught = {"teacher", "student"} <= {role.name.lower() for role in plan.space.roles} or {
        role.name for role in plan.space.roles
    } in ({"Tutor", "Learner"}, {"Tutor", "Student"}, {"Teacher", "Learner"})
    assert ("the probability that the" in text) == taught, space
    assert run(plan, 1).status is Status.ACCEPTED

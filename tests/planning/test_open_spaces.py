"""Jobs with custom spaces: the errors and notes before any request."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgen.core.errors import FileError
from edgen.planning.load import load_plan
from edgen.planning.plan import Plan
from edgen.planning.unused_variables import describe_unused, find_unused
from edgen.space.splits import hash_group

pytestmark = pytest.mark.unit

SPACE = """\
name: mine
dimensions:
  topic: [{value: Tides, grade: 4}, {value: Waves, grade: 5, hard: true}]
  mood: [calm, {value: cross, when: {topic: Waves}}]
  age: ["9", "10"]
roles:
  Tutor: {sees: [topic]}
  Learner: {sees: [topic, mood]}
"""
JOB = """\
name: mine
conversations: 10
space: ./space.yaml
prompt: ./prompt.j2
backends: {default: {type: simulator}}
"""


def plan_of(folder: Path, template: str = "{{ topic }}", job: str = "", **files: str) -> Plan:
    (folder / "space.yaml").write_text(SPACE)
    (folder / "prompt.j2").write_text(template)
    for name, text in files.items():
        (folder / f"{name}.j2").write_text(text)
    (folder / "job.yaml").write_text(JOB + job)
    return load_plan(folder / "job.yaml")


def refused(folder: Path, template: str = "{{ topic }}", job: str = "") -> str:
    with pytest.raises(FileError) as caught:
        plan_of(folder, template, job)
    return str(caught.value)


def test_a_template_uses_dimensions_and_what_entries_say_of_themselves(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        "{{ topic }} in grade {{ topic.grade }}{% if topic.hard %}, hard{% endif %}: {{ mood }}, {{ topic['grade'] + 1 }}",
    )
    texts = {plan.opening(plan.scenario(i))["default"][0].content for i in range(10)}
    assert texts == {
        "Tides in grade 4: calm, 5",
        "Waves in grade 5, hard: calm, 6",
        "Waves in grade 5, hard: cross, 6",
    }


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ student_preference }}", "line 1: there is no variable 'student_preference'"),
        ("{{ topic }}\n{{ topic.grad }}", "line 2: no value of topic has a 'grad' (did you mean 'grade'?)"),
        ("{{ topic['grad'] }}", "line 1: no value of topic has a 'grad'"),
        (
            "{{ mood.colour }}",
            "line 1: no value of mood has a 'colour'; mood has no fields",
        ),
        ("{{ topic.hard }}", "this value is empty (None) in this scenario"),
    ],
)
def test_what_a_space_has_not_is_named_before_anything_is_asked(
    tmp_path: Path, template: str, said: str
) -> None:
    assert said in refused(tmp_path, template)


def test_every_value_is_tried_with_others_that_it_occurs_with(tmp_path: Path) -> None:
    """`cross` occurs with Waves alone, so this never divides by zero."""
    plan_of(tmp_path, "{{ topic }}{% if mood == 'cross' %}{{ 1 // (topic.grade - 4) }}{% endif %}")
    assert "with" in refused(
        tmp_path, "{{ topic }}{% if mood == 'cross' %}{{ 1 // (topic.grade - 5) }}{% endif %}"
    )


def test_a_dimension_that_no_template_uses_is_reported(tmp_path: Path) -> None:
    said = [describe_unused(one) for one in find_unused(plan_of(tmp_path, "{{ topic }} {{ age }}"))]
    assert said == [f"`mood` is never used by {tmp_path / 'prompt.j2'}"]


def test_a_dimension_that_no_role_sees_is_reported(tmp_path: Path) -> None:
    job = "protocol: selfplay\nprompts: {tutor: ./tutor.j2, learner: ./learner.j2}\n"
    (tmp_path / "space.yaml").write_text(SPACE)
    for name, text in {"tutor": "{{ topic }}", "learner": "{{ topic }}"}.items():
        (tmp_path / f"{name}.j2").write_text(text)
    (tmp_path / "job.yaml").write_text(JOB.replace("prompt: ./prompt.j2\n", "") + job)
    said = [describe_unused(one) for one in find_unused(load_plan(tmp_path / "job.yaml"))]
    assert said == [
        f"`mood` is never used by {tmp_path / 'learner.j2'} (the learner's side)",
        "`age` is seen by no role, so no template can use it",
    ]
    (tmp_path / "tutor.j2").write_text("{{ mood }}")
    with pytest.raises(FileError, match="there is no variable 'mood'"):
        load_plan(tmp_path / "job.yaml")


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("colour", "$.split.by: the space has no dimension colour"),
        ("persona", "$.split.by: the space has no dimension persona"),
        ("[topic, colour]", "$.split.by: the space has no dimension colour"),
        ("[topic, topic]", "$.split.by: expected each dimension once"),
        ("[]", "$.split.by: expected each dimension once, and at least one"),
    ],
)
def test_a_split_by_what_is_not_there_is_refused(tmp_path: Path, by: str, said: str) -> None:
    assert said in refused(tmp_path, job=f"split: {{by: {by}}}\n")


def test_a_split_by_several_dimensions_keeps_their_combinations_together(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, job="split: {by: [topic, mood]}\n")
    groups: dict[tuple[str, str], set[int]] = {}
    for index in range(10):
        scenario = plan.scenario(index)
        group = groups.setdefault((scenario["topic"], scenario["mood"]), set())
        group.add(hash_group(plan.job.split.by, plan.job.seed, scenario))
    assert len(groups) == 3
    assert len({*map(frozenset, groups.values())}) == 3
    assert all(len(hashes) == 1 for hashes in groups.values())


def test_a_pairwise_job_begins_with_its_covering_array(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, job="design: pairwise\n")
    assert plan.cells == 6
    assert 4 <= plan.sampler.covering <= 6
    assert {plan.scenario(i)["mood"] for i in range(plan.sampler.covering)} == {"calm", "cross"}

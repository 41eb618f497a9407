"""Space files with custom dimensions: accepted files, and the messages for refused ones."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.core.errors import SpaceError
from edgen.protocols.oneshot import ONESHOT
from edgen.protocols.oracle import ORACLE
from edgen.protocols.selfplay import SELFPLAY
from edgen.space import Dimension, Entry, Space, SpaceRole, digest_content, dump_space, parse_space
from edgen.space.entries import OF_EDGEN
from edgen.space.model import list_template_fields, template_variables
from tests.scenarios import DEFAULT_VARIABLES
from tests.space.spaces import conditional_spaces

pytestmark = pytest.mark.unit

FRACTIONS = """\
name: fractions
dimensions:
  topic: {values: [{value: Adding, grade: 4}, {value: Comparing, grade: 3}], label: Topic}
  misconception:
    - adds both
    - {value: bigger denominator, weight: 2, when: {topic: Comparing}}
  learner: [shy, talkative]
  style: [Socratic, direct]
roles:
  Tutor: {sees: [topic, style]}
  Learner: {sees: [topic, misconception, learner]}
exclude:
  - {learner: shy, style: [direct]}
"""


def refused(text: str) -> str:
    with pytest.raises(SpaceError) as caught:
        parse_space(text, "mine.yaml")
    message = str(caught.value)
    assert all(line.isprintable() for line in message.splitlines())
    return message


def space_of(**keys: Any) -> str:
    """Return the text of a space file with these keys and a name."""
    return yaml.safe_dump({"name": "x", **keys}, sort_keys=False, allow_unicode=True)


def test_a_space_is_read_with_all_it_holds() -> None:
    space = parse_space(FRACTIONS, "mine.yaml")
    assert space.names == ("topic", "misconception", "learner", "style")
    assert space["topic"] == Dimension(
        "topic", (Entry("Adding", 1.0, {"grade": 4}), Entry("Comparing", 1.0, {"grade": 3})), "Topic"
    )
    assert space["misconception"].entries[1] == Entry(
        "bigger denominator", 2.0, {}, {"topic": ("Comparing",)}
    )
    assert space.roles == (
        SpaceRole("Tutor", ("topic", "style")),
        SpaceRole("Learner", ("topic", "misconception", "learner")),
    )
    assert space.exclude == ({"learner": ("shy",), "style": ("direct",)},)
    assert parse_space(dump_space(space), "dumped") == space
    assert template_variables(space) == ("index", "topic", "misconception", "learner", "style")
    assert template_variables(space, space.roles[0].sees) == ("index", "topic", "style")
    assert list_template_fields(space)["topic"] == ("grade",)


def test_without_roles_teacher_and_student_do_not_see_what_is_named_after_the_other() -> None:
    space = parse_space(
        space_of(dimensions={"teacher_mood": ["calm"], "student_age": ["9"], "topic": ["a"]}), "x"
    )
    assert space.roles == (
        SpaceRole("Teacher", ("teacher_mood", "topic")),
        SpaceRole("Student", ("student_age", "topic")),
    )


def test_fields_keep_their_types() -> None:
    fields = {
        "grade": 4,
        "share": 0.5,
        "hard": True,
        "words": ["a", "b"],
        "more": {"deep": {"er": 1}},
        "text": "a\nb",
    }
    space = parse_space(space_of(dimensions={"topic": [{"value": "a", **fields}]}), "x")
    assert space["topic"].entries[0].fields == fields
    assert parse_space(dump_space(space), "dumped") == space


def test_five_lists_and_the_same_dimensions_are_one_space() -> None:
    lists = {"topics": [{"value": "a", "level": "b"}], "student_preferences": ["a"], "student_reactions": ["b"],
             "teacher_preferences": ["c"], "teacher_reactions": ["d"]}  # fmt: skip
    dimensions = {name.removesuffix("s"): values for name, values in lists.items()}
    one, other = parse_space(space_of(**lists), "x"), parse_space(space_of(dimensions=dimensions), "x")
    assert one == other
    assert digest_content(one) == digest_content(other)
    more = parse_space(space_of(dimensions={**dimensions, "mood": ["calm"]}), "x")
    assert digest_content(more) != digest_content(one)


@settings(max_examples=20, deadline=None)
@given(conditional_spaces(), st.sampled_from(["label", "yes", "Ü – „x“"]))
def test_dumps_are_read_back(space: Space, label: str) -> None:
    text = dump_space(space)
    try:
        again = parse_space(text, "dumped")
    except SpaceError as error:
        assert any(said in str(error) for said in ("can never occur", "is possible with", "ruled out"))  # noqa: PT017
        return
    assert again.dimensions == space.dimensions
    assert again.exclude == space.exclude
    assert digest_content(again) == digest_content(space)


TWO = {"a": ["x", "y"], "b": ["u", "v"]}
BAD = {
    "no dimensions": (space_of(dimensions={}), "$.dimensions: expected a mapping of names to lists"),
    "65 dimensions": (
        space_of(dimensions={f"d{i}": ["a"] for i in range(65)}),
        "$.dimensions: 65 dimensions are too many; a space has at most 64",
    ),
    "five lists besides": (space_of(dimensions=TWO, topics=["a"]), "$.topics: unknown key"),
    "no identifier": (space_of(dimensions={"my topic": ["a"]}), "$.dimensions.my topic: a name is up to 40 letters"),
    "a word of Jinja's": (space_of(dimensions={"loop": ["a"]}), "$.dimensions.loop: the name loop means something else to Jinja"),
    "a variable of edgen's": (
        space_of(dimensions={"conversation": ["a"]}),
        "$.dimensions.conversation: the name conversation means something else to edgen",
    ),
    "a number for a name": (space_of(dimensions={1: ["a"]}), "$.dimensions.1: a name is a text; put it in quotes"),
    "a field of texts": (
        space_of(dimensions={"a": [{"value": "x", "title": "t"}]}),
        "$.dimensions.a[0].title: the name title means something else to texts in templates",
    ),
    "a field of another kind": (
        space_of(dimensions={"a": [{"value": "x", "grade": 4}, {"value": "y", "grade": "four"}]}),
        "$.dimensions.a[1].grade: this is a text, and grade is a number in $.dimensions.a[0]",
    ),
    "an empty field": (
        space_of(dimensions={"a": [{"value": "x", "grade": None}]}),
        "$.dimensions.a[0].grade: this key has no value",
    ),
    "a deep field": (
        f"name: x\ndimensions: {{a: [{{value: x, deep: {'[' * 20}1{']' * 20}}}]}}",
        "$.dimensions.a[0].deep: lists and mappings are nested more than 8 deep here",
    ),
    "a field 100 deep": (
        f"name: x\ndimensions: {{a: [{{value: x, deep: {'[' * 100}1{']' * 100}}}]}}",
        "deep",
    ),
    "a million values": (
        f"name: x\ndimensions: {{a: [&a x{', *a' * 1_000_000}]}}",
        "mine.yaml",
    ),
    "an unknown key beside values": (
        space_of(dimensions={"a": {"values": ["x"], "lable": "A"}}),
        "$.dimensions.a.lable: unknown key (did you mean 'label'?)",
    ),
    "a condition on an unknown dimension": (
        space_of(dimensions={"a": ["x", {"value": "y", "when": {"bb": "u"}}], "b": ["u"]}),
        "$.dimensions.a[1].when.bb: there is no dimension bb (did you mean 'b'?)",
    ),
    "a condition on an unknown value": (
        space_of(dimensions={"a": ["x", {"value": "y", "when": {"b": ["u", "w"]}}], "b": ["u", "v"]}),
        "$.dimensions.a[1].when.b: b has no value 'w'",
    ),
    "a condition on itself": (
        space_of(dimensions={"a": ["x", {"value": "y", "when": {"a": "x"}}]}),
        "$.dimensions.a[1].when.a: a condition is on other dimensions, not on its own",
    ),
    "a condition that is none": (
        space_of(dimensions={"a": ["x", {"value": "y", "when": "u"}]}),
        "$.dimensions.a[1].when: expected a mapping of dimensions to values",
    ),
    "a circle": (
        space_of(dimensions={"a": ["x", {"value": "y", "when": {"b": "v"}}], "b": ["u", {"value": "v", "when": {"a": "y"}}]}),
        "$.dimensions.a[1].when: these conditions form a circle (a → b → a)",
    ),
    "a dimension without values": (
        space_of(dimensions={"a": [{"value": "x", "when": {"b": "u"}}], "b": ["u", "v"]}),
        "$.dimensions.a: no value of a is possible with b 'v'",
    ),
    "a value that never occurs": (
        space_of(dimensions={"a": {"values": ["x", "y"]}, "b": ["u"]}, exclude=[{"a": "y"}]),
        "$.dimensions.a.values[1]: 'y' can never occur",
    ),
    "everything excluded": (
        space_of(dimensions=TWO, exclude=[{"a": ["x", "y"]}]),
        "$.exclude: everything is ruled out",
    ),
    "an empty exclusion": (space_of(dimensions=TWO, exclude=[{}]), "$.exclude[0]: expected a mapping of dimensions"),
    "an unknown exclusion": (space_of(dimensions=TWO, exclude=[{"c": "x"}]), "$.exclude[0].c: there is no dimension c"),
    "one role": (space_of(dimensions=TWO, roles={"Tutor": {"sees": ["a"]}}), "$.roles: expected 2 to 20 roles"),
    "a role that sees nothing known": (
        space_of(dimensions=TWO, roles={"Tutor": {"sees": ["aa"]}, "Learner": {"sees": []}}),
        "$.roles.Tutor.sees[0]: there is no dimension aa",
    ),
    "a role of edgen's": (
        space_of(dimensions=TWO, roles={"Judge": {"sees": []}, "Learner": {"sees": []}}),
        "$.roles.Judge: the name judge means something else to jobs and providers",
    ),
    "two roles alike": (
        space_of(dimensions=TWO, roles={"tutor": {"sees": []}, "Tutor": {"sees": []}}),
        "$.roles.Tutor: this role is spelled like tutor",
    ),
    "a role without a view": (
        space_of(dimensions=TWO, roles={"Tutor": ["a"], "Learner": {"sees": []}}),
        "$.roles.Tutor: expected what the role may know",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_in_words_that_name_the_place(case: str) -> None:
    text, expected = BAD[case]
    message = refused(text)
    assert message.startswith("space mine.yaml: ")
    assert expected in message


def test_no_dimension_can_have_the_name_of_a_variable_that_templates_are_told_besides() -> None:
    # Other protocols' own names are refused when a job uses them (planning/load).
    told = {name for one in (ONESHOT, SELFPLAY, ORACLE) for kind in one.answers for name in kind.variables}
    assert told - {*DEFAULT_VARIABLES} <= OF_EDGEN
    assert "index" in OF_EDGEN

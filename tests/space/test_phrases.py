"""Phrases of a space: read, refused, stored, outside its content; and dimensions that are personas."""

from __future__ import annotations

import pytest

from edgen.core.errors import SpaceError
from edgen.simulator.phrases.section import SECTION
from edgen.space import digest_content, dump_space, parse_space
from edgen.space.model import find_persona, find_phrases
from tests.cases import named

pytestmark = pytest.mark.unit

SPACE = """name: clinic
dimensions:
  complaint: [{value: a sore knee, since: since Monday}, {value: a cough, since: for a week}]
  manner: [calm and brief, worried about everything]
roles:
  Doctor: {sees: [complaint]}
  Patient: {sees: [complaint, manner]}
"""
PHRASES = """phrases:
  said:
    manner: {calm and brief: Fine., worried about everything: [Is it bad?, What if it stays?]}
  roles:
    Patient:
      says: ["It is {complaint}, {complaint.since}. {manner}", [Yes., No.]]
      answers: [{to: since when, says: "{Complaint.since}."}]
"""


def problems(text: str) -> str:
    try:
        SECTION.check(parse_space(text, "s"))
    except SpaceError as error:
        return str(error)
    return ""


def test_a_text_stands_for_a_list_and_a_copy_says_the_same() -> None:
    space = parse_space(SPACE + PHRASES, "s")
    assert problems(SPACE + PHRASES) == ""
    said = find_phrases(space).roles["Patient"]
    assert said.says == (("It is {complaint}, {complaint.since}. {manner}",), ("Yes.", "No."))
    assert (said.answers[0].to, said.answers[0].says) == (("since when",), ("{Complaint.since}.",))
    assert parse_space(dump_space(space), "s") == space


def test_phrases_are_no_content() -> None:
    assert digest_content(parse_space(SPACE + PHRASES, "s")) == digest_content(parse_space(SPACE, "s"))


@named(
    "part, told",
    unknown_dimension=("  persona: [moods]\n", "there is no dimension moods"),
    unknown_value=("  said: {manner: {calm: Fine.}}\n", "there is no value 'calm'"),
    unknown_role=("  roles: {Nurse: {says: [Hello.]}}\n", "there is no role Nurse"),
    unknown_slot=("  roles: {Doctor: {says: ['{age} years?']}}\n", "nothing fills {age}"),
    unknown_field=("  roles: {Doctor: {says: ['{complaint.age}?']}}\n", "nothing fills {complaint.age}"),
    unknown_key=("  roles: {Doctor: {sings: [Hello.]}}\n", "sings"),
    empty_way=("  roles: {Doctor: {says: [['']]}}\n", "is empty"),
    no_mapping=("  roles: [Doctor]\n", "expected"),
    impossible=(
        "  roles: {Doctor: {answers: [{to: hm, says: Yes., when: {manner: calm}}]}}\n",
        "answers.when.manner: there is no value 'calm'",
    ),
    unknown_when=("  roles: {Doctor: {answers: [{to: hm, says: Yes., when: {mood: calm}}]}}\n", "names mood"),
    a_number=("  roles: {Doctor: {says: [[7]]}}\n", "expected"),
)
def test_what_cannot_be_said_is_refused(part: str, told: str) -> None:
    assert told in problems(f"{SPACE}phrases:\n{part}")


def test_facts_of_values_that_a_copy_lost_are_counted() -> None:
    """A copy of a shipped space with other topics keeps its phrases, so some facts have no value."""
    space = parse_space(f"{SPACE}phrases:\n  facts: {{manner: {{calm: {{word: Fine.}}}}}}\n", "s")
    SECTION.check(space)
    facts = SECTION.describe(space, 3)
    assert facts["unused_facts"] == ["manner: calm"]
    assert any(
        "1 of their facts are about values that are not there: manner: calm" in line
        for line in SECTION.render(facts)
    )


def test_an_empty_section_says_nothing() -> None:
    assert find_phrases(parse_space(f"{SPACE}phrases:\n", "s")).roles == {}


@named(
    "dimensions, more, personas",
    by_name=("{mood: [shy, bold], topic: [tides, waves]}", "", {"mood"}),
    by_role=("{learner: [shy, bold], topic: [tides, waves]}", "", {"learner"}),
    trait_of_a_role=("{patient_style: [terse, chatty], patient_age: ['3', '4']}", "", {"patient_style"}),
    by_label=(
        "{how: {label: How you write, values: [terse, chatty]}, topic: {label: What you see, values: [a, b]}}",
        "",
        {"how"},
    ),
    declared=("{mood: [shy, bold], topic: [tides, waves]}", "phrases: {persona: [topic]}\n", {"topic"}),
    none_declared=("{mood: [shy, bold], topic: [tides, waves]}", "phrases: {persona: []}\n", set()),
)
def test_which_dimensions_are_personas(dimensions: str, more: str, personas: set[str]) -> None:
    names = "Patient: {sees: []}, Doctor: {sees: []}"
    text = f"name: s\ndimensions: {dimensions}\nroles: {{{names}}}\n{more}"
    assert find_persona(parse_space(text, "s")) == personas

"""The simulator's conversations in an answer schema that states each turn's role and form."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import jsonschema
import pytest

from edgen.core.values import Message
from edgen.simulator.schemas.form_filling import fill_form
from edgen.simulator.schemas.schema_patterns import UnfitSchema
from edgen.simulator.schemas.structured import fit_to_schema
from edgen.simulator.text import respond
from tests import ROOT

SCHEMA = (ROOT / "prompts/short_lesson.schema.json").read_bytes()
SPOKEN = (
    "Teacher: Hello! Today we look at the moon together. It has no light of its own.\n"
    "Student: Oh. Where does its light come from, then?\n"
    "Teacher: From the sun: the moon throws it back to us.\n"
    "Student: So a full moon faces the sun, does it?\n"
    "Teacher: It does. That is what we see once a month.\n"
    "Student: Now I understand what the phases are.\n"
    "Probability: 0.72"
)


def ask(topic: str, seed: int) -> list[dict[str, Any]]:
    prompt = (
        f"Write a short lesson about {topic}, as a talk between a teacher and a student. "
        "Answer in JSON, with the keys conversation (a list of turns with role and text) and probability."
    )
    reply = respond(
        [Message("user", prompt)],
        seed=seed,
        schema=SCHEMA,
        protocol="oneshot",
        speakers=(("Teacher",), ("Student",)),
    )
    turns: list[dict[str, Any]] = json.loads(reply.text)["conversation"]
    return turns


def test_the_sentences_that_fit_stand_in_their_places() -> None:
    poured = json.loads(fill_form(SPOKEN, SCHEMA))
    assert [turn["role"] for turn in poured["conversation"]] == ["Teacher", "Student"] * 3
    assert (
        poured["conversation"][0]["text"] == "Today we look at the moon together. It has no light of its own."
    )
    assert poured["conversation"][1]["text"] == "Where does its light come from, then?"
    assert poured["conversation"][4]["text"] == "That is what we see once a month."
    assert poured["probability"] == 0.7


def test_without_a_fitting_sentence_the_answer_stays_as_it_is() -> None:
    said = SPOKEN.replace("Now I understand what the phases are.", "Yes!").replace(
        "So a full moon", "no full moon"
    )
    assert fill_form(said, SCHEMA) == said


@pytest.mark.parametrize("topic", ["the moon", "Fractions", "the White House"])
def test_a_template_with_a_schema_of_its_own_gets_sentences(topic: str) -> None:
    """Patterns of texts are filled with the role's own sentences, and not with drawn letters."""
    for seed in range(40):
        for turn in ask(topic, seed):
            assert not re.search(r"[a-z][A-Z0-9]|\d[a-zA-Z]", turn["text"]), turn
            assert len(turn["text"].split()) >= 3


TEXT = {"type": "object", "properties": {"role": {"const": "Teacher"}, "text": {"$ref": "#/$defs/said"}}}


@pytest.mark.parametrize(
    "conversation",
    [
        True,
        {"type": "array", "items": True},
        {"type": "array", "items": False, "prefixItems": [True, {}]},
        {"type": "array", "prefixItems": [{"properties": {"role": True, "text": True}}, TEXT]},
        {"type": "array", "prefixItems": [{"properties": {"role": {"enum": [1, ["a"]]}, "text": {}}}, TEXT]},
        {"type": "array", "prefixItems": [TEXT, {"properties": {"role": {"const": "Student"}, "text": {}}}]},
    ],
)
def test_odd_schemas_of_a_conversation_are_met_or_left(conversation: object) -> None:
    schema = {
        "type": "object",
        "properties": {"conversation": conversation},
        "required": ["conversation"],
        "$defs": {"said": {"type": "string"}},
    }
    text = json.dumps(schema).encode()
    said = fit_to_schema(fill_form(SPOKEN, text), text, Random(1))
    jsonschema.Draft202012Validator(schema).validate(json.loads(said))


@pytest.mark.parametrize(
    "part",
    [
        True,
        {"type": "array"},
        {"type": "array", "items": True},
        {"enum": [1, "a"]},
        {"enum": [None]},
        {"anyOf": [True, {"type": "integer"}]},
        {"type": "object", "properties": {"y": True}},
        {"type": ["string", "null"]},
    ],
)
@pytest.mark.parametrize("text", [SPOKEN, "3. yes", "", '{"x": 1}'])
def test_parts_that_say_little_are_met(part: object, text: str) -> None:
    for properties in (
        {"x": part},
        {"x": part, "z": {"type": "string"}},
        {"conversation": part, "probability": part},
    ):
        schema = {"type": "object", "properties": properties, "required": [*properties]}
        encoded = json.dumps(schema).encode()
        made = fit_to_schema(fill_form(text, encoded), encoded, Random(1))
        jsonschema.Draft202012Validator(schema).validate(json.loads(made))


def test_an_empty_enum_is_refused_in_a_sentence() -> None:
    schema = b'{"type": "object", "properties": {"x": {"enum": []}}, "required": ["x"]}'
    with pytest.raises(UnfitSchema, match="enum"):
        fit_to_schema(fill_form(SPOKEN, schema), schema, Random(1))

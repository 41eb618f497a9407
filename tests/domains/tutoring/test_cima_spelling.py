"""Exercises in the spelling of CIMA's release: parts of the answer, whole phrases, rules of grammar."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edgen.core import resources
from edgen.domains.tutoring.exercises.drawing import draw_exercise
from edgen.domains.tutoring.exercises.grammar import Grammar
from edgen.domains.tutoring.exercises.model import Exercise
from edgen.domains.tutoring.exercises.pool import iterate_values
from edgen.domains.tutoring.export import _make_picture, _make_prep_entry
from edgen.plugin import Space, Turn
from edgen.space import load_space, parse_space

WORDS = ("prep", "engPrep", "obj", "engObj", "color", "engColor")
SAID = (Turn("Tutor", "Go on."), Turn("Student", "è rosso?", ("Guess",)))


def shipped() -> Space:
    return load_space(resources.find("preference_space", "italian_prepositions"))


def exercises(space: Space) -> list[Exercise]:
    grammar = Grammar(space)
    return [
        grammar.tiers[tier].make(values) for tier in grammar.tiers for values in iterate_values(grammar, tier)
    ]


def entry(made: Exercise, space: Space) -> dict[str, Any]:
    return _make_prep_entry(
        SAID, (Turn("Tutor", "No.", ("Correction",)),), made, space, _make_picture(made)[0]
    )


@pytest.fixture(scope="module")
def entries() -> dict[tuple[str, ...], dict[str, Any]]:
    """Return edgen's row of every exercise, by its English words."""
    space = shipped()
    rows = [entry(made, space) for made in exercises(space)]
    return {(one["engPrep"], one["engObj"], one["engColor"]): one for one in rows}


def test_rows_of_the_release_have_the_same_words_as_ours(
    entries: dict[tuple[str, ...], dict[str, Any]], shared_data: Path
) -> None:
    """The first twenty exercises, then all. Two pictures of the release have another preposition than the
    rest of their exercise ("davanti alla scatola rossa", "vicino al letto"): 12 of 1,135 rows."""
    released = json.loads((shared_data / "cima_prep_head.json").read_bytes())["prepDataset"]
    rows = {tuple(one[key] for key in WORDS): one for one in released.values()}
    found = [{key: one[key] for key in WORDS} for one in rows.values()]
    assert len(found) > 100
    other = []
    for place, theirs in enumerate(found):
        ours = entries[theirs["engPrep"], theirs["engObj"], theirs["engColor"]]
        if {key: ours[key] for key in WORDS} != theirs:
            other.append((place, theirs["prep"], theirs["obj"]))
    assert {(prep, obj) for _, prep, obj in other} == {
        ("e davanti alla", "scatola"),
        ("e vicino al", "letto"),
    }
    assert len([place for place, *_ in other if place < 21]) <= 1


@pytest.mark.parametrize(
    ("exercise", "parts"),
    [
        (("is inside of the", "bag", "blue"), ("e dentro la", "borsa", "blu")),
        (("is inside of the", "ball", "red"), ("e dentro la", "palla", "rossa")),
        (("is behind the", "tree", "yellow"), ("e dietro", "l'albero", "giallo")),
        (("is in front of the", "tree", "pink"), ("e di fronte", "all'albero", "rosa")),
        (("is under the", "plant", "yellow"), ("e sotto la", "pianta", "gialla")),
    ],
)
def test_parts_of_the_answer_are_inflected(
    entries: dict[tuple[str, ...], dict[str, Any]], exercise: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    one = entries[exercise]
    assert (one["prep"], one["obj"], one["color"]) == parts


def test_the_parts_are_the_answer(entries: dict[tuple[str, ...], dict[str, Any]]) -> None:
    space = shipped()
    for made in exercises(space):
        one = entry(made, space)
        assert f"{one['prep']} {one['obj']} {one['color']}" == made.answer.replace("è", "e")
    assert all(one["engPrep"] == key[0] for key, one in entries.items())


def test_grammar_rules_are_no_vocabulary(entries: dict[tuple[str, ...], dict[str, Any]]) -> None:
    for one in entries.values():
        rules = [rule for rule, note in json.loads(one["grammarRules"])]
        assert any("behind the noun" in rule for rule in rules)
        words = [f"“{one[key]}” is “" for key in ("engObj", "engColor")]
        assert not any(rule.startswith(word) for rule in rules for word in words), rules
    rules = entries["is in front of the", "bag", "red"]["grammarRules"]
    assert "becomes “rossa”" in rules
    assert "alla borsa" in rules


def test_a_space_s_own_rules_are_told_apart_from_its_words() -> None:
    text = """\
name: houses
dimensions:
  preposition: [{value: near, it: presso}]
  object: [{value: old house, it: casa vecchia, feminine: true}, {value: wall, it: muro, feminine: false}]
  colour: [{value: red, it: rosso}]
roles: {Tutor: {sees: [question, answer, points]}, Student: {sees: [question]}}
exercises:
  rules:
    noun:
      - {gives: "la {{ object.it }}", when: {object.feminine: true}, point: "{{ object }} has la"}
      - {gives: "il {{ object.it }}", when: {object.feminine: false}}
  tiers:
    one:
      concepts: [preposition, object, colour]
      question: "Where? {{ preposition }} {{ object }} {{ colour }}"
      answers: "È {{ preposition.it }} {{ noun }} più {{ colour.it }}"
      points: ["{{ colour }} is {{ colour.it }}", Colours come last.]
"""
    space = parse_space(text, "houses.yaml")
    first, second = exercises(space)
    assert first.rules == ("old house has la", "Colours come last.")
    assert second.rules == ("Colours come last.",)
    assert first.points == ("old house has la", "red is rosso", "Colours come last.")
    one = entry(first, space)
    assert [one[key] for key in ("prep", "obj", "color")] == ["E presso la", "casa vecchia", "piu rosso"]
    assert one["engPrep"] == "is near the"


def test_an_answer_without_the_object_has_the_words_of_its_concepts() -> None:
    space = shipped()
    made = exercises(space)[0]
    odd = msgspec.structs.replace(made, answers=("qualcosa",))
    assert entry(odd, space)["obj"] == "gatto"


def test_a_scene_names_its_subject() -> None:
    for made in exercises(shipped()):
        subject = made.question.split("“the ")[1].split(" is ")[0]
        assert subject in ("cat", "dog", "bunny")
        assert made.concepts["object"] != subject
        assert made.picture is not None
        assert made.picture.startswith(f"a {subject} ")
        assert {"cat": "il gatto", "dog": "il cane", "bunny": "il coniglio"}[
            subject
        ] + " ___" in made.question
        drawn = draw_exercise(made)
        assert drawn is not None
        assert f"<title>{made.picture}</title>" in drawn
        assert "something" not in drawn + made.question

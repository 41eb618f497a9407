"""Pictures of exercises: contents, safety and determinism, refused pictures, and where people see them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from edgen.cli.app import app
from edgen.core import resources
from edgen.core.errors import SpaceError, UsageError
from edgen.domains.tutoring.exercises.drawing import (
    COLOURS,
    POSITIONS,
    THINGS,
    draw,
    draw_exercise,
    find_thing_problem,
    make_picture_name,
)
from edgen.domains.tutoring.exercises.grammar import Grammar
from edgen.domains.tutoring.exercises.model import Exercise, Thing
from edgen.domains.tutoring.exercises.pool import check_exercises, iterate_values
from edgen.space import digest_content, dump_space, load_space, parse_space
from tests.domains.tutoring.test_exercises import WORDS, changed
from tests.dose import dose

SPACES = ("italian_shapes", "italian_prepositions", "fractions")
TAGS = {"svg", "title", "rect", "path", "g", "ellipse", "circle", "text"}


def shipped(name: str) -> Grammar:
    return Grammar(load_space(resources.find("preference_space", name)))


def every(grammar: Grammar) -> list[Exercise]:
    return [
        grammar.tiers[tier].make(values) for tier in grammar.tiers for values in iterate_values(grammar, tier)
    ]


def tags(picture: str) -> set[str]:
    """Return the elements of a picture, after checks of their attributes."""
    found = list(ElementTree.fromstring(picture).iter())
    names = {key for one in found for key in one.attrib}
    assert not any("href" in name or name.startswith("on") or name == "style" for name in names)
    return {one.tag.partition("}")[2] for one in found}


@pytest.mark.parametrize("name", SPACES)
def test_every_shipped_exercise_has_a_picture_of_its_own(name: str) -> None:
    exercises = [
        one
        for place, one in enumerate(every(shipped(name)))
        if name != "fractions" or place % 9 == 0  # its pictures do not depend on the misconception
    ]
    pictures = {(one.tier, *one.concepts.values()): draw_exercise(one) for one in exercises}
    drawn = [picture for picture in pictures.values() if picture]
    assert len(drawn) == len(pictures) == len({*drawn})
    assert all(tags(picture) <= TAGS and len(picture) < 8_000 for picture in drawn)
    assert len({make_picture_name(one) for one in exercises}) == len(pictures)


def test_a_picture_says_what_it_shows() -> None:
    one = next(one for one in every(shipped("italian_prepositions")) if one.concepts["colour"] == "blue")
    picture = draw_exercise(one)
    assert picture is not None
    assert "<title>a bunny on top of a blue cat</title>" in picture
    assert COLOURS["blue"] in picture
    assert make_picture_name(one) == "phrases_on_top_of_cat_blue.svg"


def test_parts_of_a_whole_are_as_many_as_they_say() -> None:
    picture = draw(
        [Thing("bar", "blue", parts="3", of="8"), Thing("pie", "red", parts="2", of="5", label="2/5")]
    )
    assert picture.count(f'fill="{COLOURS["blue"]}"') == 3
    assert picture.count(f'fill="{COLOURS["red"]}"') == 2
    assert picture.count('fill="#fffdf8"') == 5 + 3
    assert ">2/5</text>" in picture


def test_words_are_escaped() -> None:
    words = "<script>x</script> & {m} \"'"
    picture = draw([Thing("card", label=words), Thing("cat", label=words)], words)
    texts = [one.text for one in ElementTree.fromstring(picture).iter() if one.text and one.text.strip()]
    assert tags(picture) <= TAGS
    assert texts[0] == words
    assert texts[-1] == words
    assert texts[1].startswith("<script>x</script> ")


THING = st.builds(
    Thing,
    st.sampled_from([name for name in THINGS if name not in ("bar", "pie")]),
    st.sampled_from([*COLOURS]),
    st.sampled_from(["", *POSITIONS]),
)
PARTS = st.builds(
    Thing,
    st.sampled_from(["bar", "pie"]),
    parts=st.just("1"),
    of=st.sampled_from(["1", "2", "48"]),
    label=st.text(max_size=40),
)


@settings(max_examples=dose(10, 40))
@given(st.lists(THING | PARTS, min_size=1, max_size=12))
def test_whatever_can_be_written_is_drawn_within_its_edges(things: list[Thing]) -> None:
    things = [one for one in things if find_thing_problem(one) is None]
    if not things:
        return
    picture = draw(things, "all")
    assert picture == draw(things, "all")
    assert len(picture) < 100_000
    root = ElementTree.fromstring(picture)
    wide, high = map(float, root.attrib["viewBox"].split()[2:])
    for group in root:
        if group.tag.endswith("}g"):
            x, y = map(float, group.attrib["transform"].partition("(")[2].partition(")")[0].split())
            assert 0 < x < wide
            assert 0 < y < high


@pytest.mark.parametrize(
    ("thing", "told"),
    [
        ({"thing": "{{ word }}"}, "$.exercises.tiers.words.draw[0].thing: there is no thing 'house'"),
        ({"thing": "cta"}, "draw[0].thing: there is no thing 'cta' (did you mean 'cat'?)"),
        ({"thing": "cat", "colour": "blu"}, "draw[0].colour: there is no colour 'blu' (did you mean 'blue'?)"),
        ({"thing": "cat", "position": "inside"}, "draw[0].position: there is no position 'inside' (did you mean 'inside of'?)"),
        ({"thing": "pie", "parts": "3", "of": "2"}, "draw[0].parts: 3 parts of 2 are more than there are"),
        ({"thing": "pie", "parts": "a", "of": "2"}, "draw[0].parts: expected a whole number, got 'a'"),
        ({"thing": "bar", "parts": "1", "of": "99"}, "draw[0].of: expected 1 to 48 parts, got 99"),
        ({"thing": "cat", "label": "x" * 41}, "draw[0].label: it is longer than 40 characters"),
        ({"thing": "cat", "position": "under", "label": "x"}, "draw[0].label: only things without a position"),
        ({"thing": "{{ wrd }}"}, "draw[0].thing: there is no variable 'wrd'"),
        ({"thing": "cat", "color": "red"}, "draw[0].color: unknown key (did you mean 'colour'?)"),
        ({"colour": "red"}, "draw[0].thing: this key is missing"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused_with_its_place(thing: dict[str, Any], told: str) -> None:
    space = json.dumps(changed(f"{WORDS}/draw", [thing]))
    with pytest.raises(SpaceError) as caught:
        check_exercises(Grammar(parse_space(space, "own.yaml")))
    assert told in str(caught.value)


def test_a_grammar_of_ones_own_draws_and_its_scenarios_stay_as_they_were() -> None:
    things = [
        {"thing": "card", "label": "{{ article }} {{ word.es }}"},
        {"thing": "{% if size == 'big' %}star{% endif %}", "position": "next to"},
    ]
    space = parse_space(json.dumps(changed(f"{WORDS}/draw", things)), "own.yaml")
    assert parse_space(dump_space(space), "own.yaml") == space
    plain = parse_space(json.dumps(changed(f"{WORDS}/draw", [])), "own.yaml")
    assert digest_content(space) == digest_content(plain)
    made = {one.question: one for one in every(Grammar(space))}
    assert [one.thing for one in made["big house?"].drawing] == ["card", "star"]
    assert [one.thing for one in made["small house?"].drawing] == ["card"]
    assert ">la casa</text>" in (draw_exercise(made["small house?"]) or "")


def test_the_command_writes_pictures_into_a_new_folder(tmp_path: Path) -> None:
    arguments = ["space", "show", "italian_shapes", "--exercises", "4", "--pictures", str(tmp_path / "new")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    names = {path.name for path in (tmp_path / "new").iterdir()}
    page = (tmp_path / "new" / "index.html").read_text("utf-8")
    assert len(names) == 5
    assert all(name in page for name in names - {"index.html"})
    error = CliRunner().invoke(app, arguments).exception
    assert isinstance(error, UsageError)
    assert "is not overwritten" in str(error)
    other = (
        CliRunner().invoke(app, ["space", "show", "broad", "--pictures", str(tmp_path / "other")]).exception
    )
    assert isinstance(other, UsageError)
    assert "nothing in it can be drawn" in str(other)
    assert not (tmp_path / "other").exists()

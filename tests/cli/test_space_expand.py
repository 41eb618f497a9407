"""`edgen space expand`: a model is asked for more values, and a new file holds the old and the new ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgen.cli.space.expand import publish
from edgen.errors import UsageError
from edgen.protocols.alike import Known
from edgen.space import DIMENSIONS, Space, content_sha256, load_space
from tests.cli.command import Command

SMALL = """\
name: small
source: "Written for this test"
topics: ["Photosynthesis", "The Water Cycle", "World War 1"]
student_preferences: [{value: "lectures", weight: 3}, {value: "quizzes", weight: 1}, {value: "games", weight: 2}]
student_reactions: ["and gets rude otherwise"]
teacher_preferences: ["lectures"]
teacher_reactions: ["and gives up otherwise"]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own with a space in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL)
    return tmp_path


def values(space: Space, dimension: str) -> list[str]:
    return [entry.value for entry in getattr(space, dimension)]


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_every_dimension_grows_in_a_new_file(command: Command, here: Path, dimension: str) -> None:
    ended = command("space", "expand", "small.yaml", "--dimension", dimension, "--count", "60", "--json")
    assert ended.code == 0, ended.err
    assert "the simulator: its values are made up, and no model is asked" in ended.err
    facts = json.loads(ended.out)
    old, new = load_space(here / "small.yaml"), load_space(here / "small-expanded.yaml")
    assert (here / "small.yaml").read_text() == SMALL
    for name in DIMENSIONS:
        expected = values(old, name) + (facts["values"] if name == dimension else [])
        assert values(new, name) == expected
    assert facts["kept"] == len(facts["values"]) == 60
    dropped = facts["dropped"]
    assert dropped["identical"] + dropped.get("near_duplicate", 0) > 5, "the simulator plants them"
    known = Known(values(old, dimension))
    for value in facts["values"]:
        assert known.twin(value) is None
        known.add(value)


def test_where_it_comes_from_is_said(command: Command, here: Path) -> None:
    facts = json.loads(
        command(
            "space", "expand", "small.yaml", "--dimension", "student_preferences", "--count", "4", "--json"
        ).out
    )
    new = load_space(here / "small-expanded.yaml")
    assert new.name == "small-expanded"
    assert new.source is not None
    for said in (
        content_sha256(load_space(here / "small.yaml")),
        facts["template"]["sha256"],
        "4 more student_preferences behind its own 3, by a simulator (edgen-simulator)",
        "no model wrote them",
        f"identical {facts['dropped']['identical']}",
        "The source of the space before: Written for this test",
    ):
        assert said in new.source, said
    # As common as the ones that were there: the median of 3, 1 and 2.
    assert {entry.weight for entry in new.student_preferences[3:]} == {2.0}


def test_asked_again_it_asks_nothing_and_overwrites_nothing(command: Command, here: Path) -> None:
    arguments = ("space", "expand", "small.yaml", "--dimension", "topics", "--count", "80", "--json")
    first = json.loads(command(*arguments).out)
    made = first["calls"]["made"]
    text = (here / "small-expanded.yaml").read_text()
    refused = command(*arguments)
    assert refused.code == 2
    assert "nothing is overwritten" in refused.err
    assert (here / "small-expanded.yaml").read_text() == text
    (here / "small-expanded.yaml").unlink()
    again = json.loads(command(*arguments).out)
    assert again["calls"]["made"] == made, "an answer that was stored was asked for again"
    assert again["calls"]["replayed"] == made
    assert (here / "small-expanded.yaml").read_text() == text
    # A larger wish begins with the same answers.
    (here / "small-expanded.yaml").unlink()
    more = json.loads(command(*arguments[:-2], "140", "--json").out)
    assert more["calls"]["replayed"] == made
    assert more["values"][:80] == first["values"]


def test_what_runs_dry_is_written_and_said(command: Command, here: Path) -> None:
    ended = command("space", "expand", "small.yaml", "--dimension", "teacher_reactions", "--count", "400")
    assert ended.code == 3
    assert "of 400 new values were found; the last answers brought nothing new" in ended.err
    assert 100 < len(load_space(here / "small-expanded.yaml").teacher_reactions) < 400


def test_a_new_value_weighs_as_those_that_are_drawn(command: Command, here: Path) -> None:
    weights = [0, 0, 0, 2, 8, 4]
    entries = [{"value": f"way {'abcdef'[i]}", "weight": weight} for i, weight in enumerate(weights)]
    text = SMALL.splitlines()
    text[3] = f"student_preferences: {json.dumps(entries)}"
    (here / "small.yaml").write_text("\n".join(text))
    command("space", "expand", "small.yaml", "--dimension", "student_preferences", "--count", "3")
    grown = load_space(here / "small-expanded.yaml").student_preferences
    assert [entry.weight for entry in grown] == [*weights, 4, 4, 4]


class TestPublish:
    def test_what_has_come_meanwhile_stays(self, tmp_path: Path) -> None:
        (tmp_path / "out.yaml").write_text("theirs")
        with pytest.raises(UsageError, match="has come meanwhile"):
            publish(tmp_path / "out.yaml", "mine")
        assert [path.read_text() for path in tmp_path.iterdir()] == ["theirs"]

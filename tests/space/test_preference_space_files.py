"""The shipped spaces: Education Dialogue's vocabulary against its publication, and edgen's own."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from edgen.core import resources
from edgen.space import Space, dump_space, load_space, parse_space
from tests import ROOT

# The words that the sentences of Education Dialogue's prompt need after "He prefers to teach this way, ".
REACTION = re.compile(r"(and|but) [a-z][a-z' -]*[a-z]")


def shipped(name: str) -> Space:
    return load_space(resources.find("preference_space", name))


@pytest.mark.parametrize("name", resources.list_shipped("preference_space"))
def test_every_shipped_space_is_valid_and_named_after_its_file(name: str) -> None:
    space = shipped(name)
    assert space.name == name
    assert space.description
    assert space.source
    assert parse_space(dump_space(space), name, resources.find("preference_space", name)) == space


def test_the_documentation_names_every_shipped_space() -> None:
    pages = "\n".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))
    names = resources.list_shipped("preference_space")
    assert {"broad", "education_dialogue", "education_dialogue_faithful", "math_misconceptions"} <= {*names}
    assert [name for name in names if not re.search(rf"\b{name}\b", pages)] == []


@pytest.mark.parametrize("name", ["education_dialogue", "education_dialogue_faithful"])
def test_education_dialogue_is_as_published_word_for_word(name: str, shared_data: Path) -> None:
    published = json.loads((shared_data / "ed_vocabulary.json").read_text("utf-8"))
    topics = published["topics_list_as_published"]
    if name == "education_dialogue":
        fused = topics.index("The Eiffel TowerConfucius")
        topics[fused : fused + 1] = ["The Eiffel Tower", "Confucius"]
        topics.remove("The Respiratory System")
    space = shipped(name)
    assert space["topic"].values == tuple(topics)
    assert space["student_preference"].values == tuple(published["student_pref"])
    assert space["student_reaction"].values == tuple(published["student_reaction"])
    assert space["teacher_preference"].values == tuple(published["teacher_pref"])
    assert space["teacher_reaction"].values == tuple(published["teacher_reaction"])
    assert all(entry.weight == 1 for one in space.dimensions for entry in one.entries)


def test_only_the_faithful_variant_keeps_the_mistakes() -> None:
    mended, faithful = shipped("education_dialogue"), shipped("education_dialogue_faithful")
    assert len(mended["topic"].entries) == len(faithful["topic"].entries) == 78
    assert mended.product == faithful.product == 78 * 4 * 6 * 4 * 5
    assert max(Counter(mended["topic"].values).values()) == 1
    assert faithful["topic"].values.count("The Respiratory System") == 2
    assert "The Eiffel TowerConfucius" not in mended["topic"].values
    assert {"The Eiffel Tower", "Confucius"} <= set(mended["topic"].values)
    assert mended.dimensions[1:] == faithful.dimensions[1:]


def test_every_released_record_was_drawn_from_the_faithful_variant(shared_data: Path) -> None:
    records = json.loads((shared_data / "ed_release_sample.json").read_text("utf-8"))
    space = shipped("education_dialogue_faithful")
    assert records
    for record in records:
        background = record["background_info"]
        assert background["topic"] in space["topic"].values
        assert background["student_prefrences"] in space["student_preference"].values
        assert background["student_reactions"] in space["student_reaction"].values
        assert background["teacher_prefrences"] in space["teacher_preference"].values
        assert background["teacher_reactions"] in space["teacher_reaction"].values


def test_broad_is_as_wide_as_it_says() -> None:
    space = shipped("broad")
    by_subject = Counter(
        (entry.fields.get("subject"), entry.fields.get("level")) for entry in space["topic"].entries
    )
    subjects = {subject for subject, _ in by_subject}
    assert None not in subjects
    assert len(subjects) == 16, "its description says sixteen"
    assert {level for _, level in by_subject} == {"primary", "secondary", "undergraduate"}
    assert len(space["topic"].entries) >= 360
    assert len(by_subject) == 48, "every subject has topics of all three levels"
    assert min(by_subject.values()) >= 6
    assert len(space["student_preference"].entries) >= 12
    assert len(space["teacher_preference"].entries) >= 12
    assert len(space["student_reaction"].entries) >= 10
    assert len(space["teacher_reaction"].entries) >= 10


def test_broad_reads_well_in_the_sentences_of_the_prompt() -> None:
    space = shipped("broad")
    for value in space["student_reaction"].values + space["teacher_reaction"].values:
        assert REACTION.fullmatch(value), f"... prefers to learn this way, {value}."
    for value in space["student_preference"].values + space["teacher_preference"].values:
        assert re.fullmatch(r"[a-z][a-z', -]*[a-z]", value), f"The student likes {value}."
    for value in space["topic"].values:
        assert 1 <= len(value.split()) <= 12
        assert not value.endswith((".", "?", "!")), f"... the student about {value}."
        assert value[0].isupper()


def test_broad_has_no_two_topics_that_are_nearly_the_same() -> None:
    words = {value: _words(value) for value in shipped("broad")["topic"].values}
    close = [
        (one, other)
        for (one, first), (other, second) in itertools.combinations(words.items(), 2)
        if len(first & second) > 0.5 * len(first | second)
    ]
    assert close == []
    assert len(_words("The phases of the Moon") & _words("Phases of moons")) == 2, "the measure works"


def _words(text: str) -> set[str]:
    """Return the content words of a text, without plural endings."""
    small = {"the", "a", "an", "of", "and", "in", "on", "to", "for", "by", "with", "is", "how", "why", "what"}
    return {word.rstrip("s") for word in re.findall(r"[a-z]+", text.lower()) if word not in small}


def test_broad_weighs_reactions_only() -> None:
    space = shipped("broad")
    for entries in (
        space["topic"].entries,
        space["student_preference"].entries,
        space["teacher_preference"].entries,
    ):
        assert {entry.weight for entry in entries} == {1.0}
    for entries in (space["student_reaction"].entries, space["teacher_reaction"].entries):
        assert {entry.weight for entry in entries} == {1.0, 2.0, 3.0}

"""The intended family of each preference of the shipped spaces."""

from __future__ import annotations

import pytest

from edgen.core import resources
from edgen.reading import phrase_kinds
from edgen.space import load_space

# Each part of a preference with the families that its words name; without families it keeps its own
# words.
LEARNING: dict[str, tuple[str, ...]] = {
    "interactive learning": ("discussion",),
    "class discussions": ("discussion",),
    "asking questions": ("discussion",),
    "direct instruction": ("lecture",),
    "lecture-based learning": ("lecture",),
    "hands-on activities": ("hands_on",),
    "real-world applications": ("hands_on",),
    "creative expression": ("creative",),
    "story telling": ("creative",),
    "gamification": ("creative",),
    "direct explanations with clear notes to copy": ("lecture",),
    "asking questions and talking ideas through": ("discussion",),
    "hands-on experiments": ("hands_on",),
    "worked examples followed by similar exercises": ("practice",),
    "diagrams, sketches and concept maps": ("visual",),
    "stories and anecdotes that carry the idea": ("creative",),
    "games, quizzes and friendly competition": ("creative", "assessment"),
    "solving puzzles before anything is explained": ("creative",),
    "real problems from everyday life": ("hands_on",),
    "explaining the idea back in plain words": ("discussion",),
    "working with a partner or a small group": ("peer",),
    "reading quietly first and asking about it afterwards": ("reading",),
    "analogies with sports, music or other hobbies": ("creative",),
    "short steps with frequent feedback": ("coaching",),
    "debating and defending a point of view": ("discussion",),
    "seeing the big picture before any details": (),
}
TEACHING: dict[str, tuple[str, ...]] = {
    "direct instruction": ("lecture",),
    "lecture-based learning": ("lecture",),
    "interactive learning": ("discussion",),
    "class discussions": ("discussion",),
    "inquiry-based learning": ("discussion",),
    "experiential learning": ("hands_on",),
    "hands-on activities": ("hands_on",),
    "formative assessment": ("assessment",),
    "clear lectures that go from definition to example": ("lecture",),
    "asking questions until the student finds the answer": ("discussion",),
    "demonstrations and simple experiments": ("hands_on",),
    "solving one example aloud and then giving less and less help": ("practice",),
    "drawing diagrams and timelines on the board": ("visual",),
    "telling stories about how ideas were discovered": ("creative",),
    "checking understanding with a short quiz after each step": ("assessment",),
    "projects that end in something the student has made": ("project",),
    "letting the student explore first and explaining afterwards": ("independent", "lecture"),
    "case studies and real data": ("project", "hands_on"),
    "role play and debates": ("creative", "discussion"),
    "repeated practice with immediate correction": ("practice",),
    "having the student teach the idea back": ("discussion",),
    "comparing common mistakes with correct answers": ("practice",),
    "linking the topic to the student's own interests": ("coaching",),
    "reading a short text together line by line": ("reading",),
}


def shipped(side: str) -> set[str]:
    """Return the parts of all preferences of one side, over all shipped spaces."""
    spaces = [
        load_space(resources.find("preference_space", name))
        for name in resources.list_shipped("preference_space")
    ]
    name = f"{side}_preference"
    entries = [entry for space in spaces if name in space.names for entry in space[name].entries]
    return {part for entry in entries for part in phrase_kinds.split_parts(entry.value)}


@pytest.mark.parametrize(("side", "intended"), [("student", LEARNING), ("teacher", TEACHING)])
def test_family_of_every_shipped_preference(side: str, intended: dict[str, tuple[str, ...]]) -> None:
    assert {part: phrase_kinds.find_methods(part) for part in shipped(side)} == intended


@pytest.mark.parametrize(
    ("learning", "teaching"),
    [
        (
            "worked examples followed by similar exercises",
            "clear lectures that go from definition to example",
        ),
        ("direct explanations with clear notes to copy", "demonstrations and simple experiments"),
        ("seeing the big picture before any details", "drawing diagrams and timelines on the board"),
    ],
)
def test_what_only_sounds_alike_is_no_match(learning: str, teaching: str) -> None:
    assert not phrase_kinds.match(learning, teaching)

"""What the simulator understands of a prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgen.backends.simulator import families
from edgen.backends.simulator.prompt import Brief, read
from edgen.model import Message
from tests.backends.simulator.prompts import (
    LEARNING,
    STUDENT_REACTIONS,
    TEACHER_REACTIONS,
    TEACHING,
    prompt,
)


def brief(text: str) -> Brief:
    task = read([Message("user", text)])
    assert task is not None
    return task.brief


def test_published_prompt(shared_data: Path) -> None:
    text = (shared_data / "ed_prompt.txt").read_text(encoding="utf-8")
    values = {
        "topic": "Newton's Third Law of Motion",
        "student_pref": LEARNING[0],
        "student_reaction": STUDENT_REACTIONS[5],
        "teacher_pref": TEACHING[2],
        "teacher_reaction": TEACHER_REACTIONS[1],
    }
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    task = read([Message("user", text)])
    assert task is not None
    assert task.brief == Brief(*values.values())
    assert (task.layout, task.turns, task.end_marker, task.probability) == ("published", (10, 15), True, True)


def test_shipped_templates() -> None:
    """The templates' own frames, filled in as text: nothing of the scenario is lost."""
    values = {
        "topic": "Proof by induction",
        "student_preference": "games, quizzes and friendly competition",
        "student_reaction": "and loses focus otherwise",
        "teacher_preference": "role play and debates",
        "teacher_reaction": "and asks for patience otherwise",
    }
    folder = Path(__file__).resolve().parents[3] / "prompts"
    templates = sorted(folder.glob("education_dialogue*.j2"))
    assert len(templates) >= 2
    for template in templates:
        text = template.read_text(encoding="utf-8")
        for name, value in values.items():
            text = text.replace(f"{{{{ {name} }}}}", value)
        task = read([Message("user", text)])
        assert task is not None, template
        assert task.brief == Brief(**values), template
        assert task.layout == ("json" if "json" in template.name else "published")


def test_labelled_lines() -> None:
    found = brief(
        "Write a conversation between a teacher and a student.\n"
        "**Topic:** Plate tectonics\n"
        "- Student preference: maps\n"
        '  "student_reaction": "and sulks",\n'
        "* Teacher's preference: drills\n"
        "Teacher reaction: and sings\n"
    )
    assert found == Brief("Plate tectonics", "maps", "and sulks", "drills", "and sings")


@pytest.mark.parametrize(
    "topic",
    [
        "Martin Luther King Jr. and the law",
        "The U.S. Constitution",
        "Value: 3.14 and other numbers",
        "the teacher's role, e.g. in The Republic",
        "Ünïcödé — “quotes”",
        "{{ 7 * 7 }}",
        "\x1b[31mred\x1b[0m",
    ],
)
def test_topic_is_read_to_its_end(topic: str) -> None:
    assert brief(prompt(topic)[0].content).topic == topic


def test_what_is_not_said_is_not_there() -> None:
    assert brief("Simulate a conversation between a teacher in school and a student.") == Brief()


def test_what_the_assistant_said_before_is_no_task() -> None:
    earlier = Message("assistant", prompt()[0].content)
    assert read([earlier, Message("user", "Thank you.")]) is None


@pytest.mark.parametrize(
    ("phrase", "family"),
    [
        (LEARNING[0], "discussion"),
        (LEARNING[1], "lecture"),
        (LEARNING[2], "hands_on"),
        (LEARNING[3], "creative"),
        (TEACHING[1], "discussion"),
        (TEACHING[2], "hands_on"),
        (TEACHING[3], "assessment"),
        ("diagrams and colourful charts", "visual"),
        ("reading a chapter in silence", "reading"),
        ("working with a partner", "peer"),
        ("going at one's own pace", "independent"),
        ("long projects", "project"),
        ("worked examples", "practice"),
        ("short videos", "technology"),
        ("one-on-one mentoring", "coaching"),
    ],
)
def test_family_of_a_method(phrase: str, family: str) -> None:
    assert families.methods(phrase)[0] == family


def test_matches_among_the_published_vocabulary() -> None:
    fitting = {(a, b) for a in LEARNING for b in TEACHING if families.match(a, b)}
    assert fitting == {
        (LEARNING[0], TEACHING[1]),
        (LEARNING[1], TEACHING[0]),
        (LEARNING[2], TEACHING[2]),
    }
    assert families.match("basket weaving", "Basket weaving"), "the same words fit, known or not"


@pytest.mark.parametrize(
    ("phrase", "kind"),
    [
        *zip(
            STUDENT_REACTIONS,
            ("rude", "disengaged", "frustrated", "anxious", "adapts", "tells"),
            strict=True,
        ),
        ("and becomes nervous", "anxious"),
        ("and cracks silly jokes", "jokes"),
        ("and zones out", "disengaged"),
        ("and hums", "other"),
    ],
)
def test_kind_of_a_students_reaction(phrase: str, kind: str) -> None:
    assert families.student_reaction(phrase) == kind


@pytest.mark.parametrize(
    ("phrase", "kind"),
    [
        *zip(TEACHER_REACTIONS, ("frustrated", "blames", "gives_up", "adapts", "insists"), strict=True),
        ("and becomes sarcastic", "sarcastic"),
        ("and rushes through", "hurries"),
        ("and hums", "other"),
    ],
)
def test_kind_of_a_teachers_reaction(phrase: str, kind: str) -> None:
    assert families.teacher_reaction(phrase) == kind

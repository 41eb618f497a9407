"""The simulator's understanding of a prompt."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edgen.core.values import Message
from edgen.reading import phrase_kinds
from edgen.simulator.prompts.conversation_prompt import ScenarioBrief, read
from tests import ROOT
from tests.simulator.prompts import (
    LEARNING,
    STUDENT_REACTIONS,
    TEACHER_REACTIONS,
    TEACHING,
    prompt,
)


def brief(text: str) -> ScenarioBrief:
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
    assert task.brief == ScenarioBrief(*values.values())
    assert (task.form, task.turns, task.end_marker, task.probability) == (None, (10, 15), True, True)


VALUES = {
    "topic": "Proof by induction",
    "student_preference": "games, quizzes and friendly competition",
    "student_reaction": "and worries about making mistakes otherwise",
    "teacher_preference": "role play and debates",
    "teacher_reaction": "and insists on it whatever the student says",
}
TEMPLATES = sorted((ROOT / "prompts").glob("education_dialogue*.j2"))


def filled(template: str) -> str:
    for name, value in VALUES.items():
        template = template.replace(f"{{{{ {name} }}}}", value)
    return template


def test_shipped_templates() -> None:
    """The templates' own frames, filled in as text: nothing of the scenario is lost."""
    assert len(TEMPLATES) >= 2
    for template in TEMPLATES:
        task = read([Message("user", filled(template.read_text(encoding="utf-8")))])
        assert task is not None, template
        assert task.brief == ScenarioBrief(**VALUES), template
        assert (task.form is None) == (template.stem == "education_dialogue")


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_template_that_forgets_a_field_loses_this_field_alone(template: Path, name: str) -> None:
    text = template.read_text(encoding="utf-8")
    field = f"{{{{ {name} }}}}"
    without = re.sub(rf"^- .*{field}\n|[^.\n]*{field}\.", "", text, count=1, flags=re.MULTILINE)
    assert field in text
    assert field not in without
    assert brief(filled(without)) == ScenarioBrief(**VALUES)._replace(**{name: None})


def test_items_of_a_section_come_in_any_order() -> None:
    found = brief(
        "Write a conversation.\n\nThe student:\n- is twelve\n- if taught otherwise: and sulks\n- likes: maps\n"
    )
    assert found == ScenarioBrief(student_preference="maps", student_reaction="and sulks")


@pytest.mark.parametrize(
    "sentence",
    [
        "Write a conversation at school between one teacher and one student.",
        "Write a conversation. Output the conversation only, nothing else.",
        "Simulate a conversation. The conversation ends only when either side says [end of conversation].",
        "Write a conversation on one page.",
        "Write a conversation. The lesson goes on until the student gives up.",
        "Write a conversation. A lesson in school goes on for as long as it takes.",
        "Write a conversation of about 10 to 15 turns.",
        "Write a conversation. The lesson takes about half an hour.",
        "Write a conversation.\n- when the lesson goes another way: and asks about the weather",
    ],
)
def test_sentence_that_names_no_topic_gives_none(sentence: str) -> None:
    assert brief(sentence).topic is None


@pytest.mark.parametrize(
    "sentence",
    [
        "Write a dialogue between a teacher and a student about photosynthesis in 10-15 turns.",
        "Write a conversation about photosynthesis, in about 12 turns.",
        "Write a dialogue about photosynthesis between a teacher and a student.",
        "Write a conversation. The lesson is on photosynthesis.",
        "Write a dialogue in a lesson between a teacher and a student on photosynthesis.",
        "Write the dialogue of a lesson on photosynthesis of 6 to 8 turns.",
    ],
)
def test_topic_named_in_passing(sentence: str) -> None:
    assert brief(sentence).topic == "photosynthesis"


def test_labelled_lines() -> None:
    found = brief(
        "Write a conversation between a teacher and a student.\n"
        "**Topic:** Plate tectonics\n"
        "- Student preference: maps\n"
        '  "student_reaction": "and sulks",\n'
        "* Teacher's preference: drills\n"
        "Teacher reaction: and sings\n"
    )
    assert found == ScenarioBrief("Plate tectonics", "maps", "and sulks", "drills", "and sings")


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
    assert brief("Simulate a conversation between a teacher in school and a student.") == ScenarioBrief()


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
    assert phrase_kinds.find_methods(phrase)[0] == family


def test_matches_among_the_published_vocabulary() -> None:
    fitting = {(a, b) for a in LEARNING for b in TEACHING if phrase_kinds.match(a, b)}
    assert fitting == {
        (LEARNING[0], TEACHING[1]),
        (LEARNING[1], TEACHING[0]),
        (LEARNING[2], TEACHING[2]),
    }
    assert phrase_kinds.match("basket weaving", "Basket weaving"), "the same words fit, known or not"


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
    assert phrase_kinds.find_student_reaction(phrase) == kind


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
    assert phrase_kinds.find_teacher_reaction(phrase) == kind

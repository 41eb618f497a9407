"""Labels of layouts without a rule; lists and tables about teachers that are no conversation."""

from __future__ import annotations

import pytest

from edgen.core.values import Conversation, Rejection
from edgen.reading import read
from tests.timing import takes_at_most

SAID = (
    "Good morning, all.",
    "Is it cold?",
    "It is, so come in.",
    "Thank you!",
    "Sit here.",
    "I will, thanks.",
)
FRAMES = [
    "{n} / {r} / {t}", "#{r}# {t}", "{{{r}}}: {t}", "@{r} {t}", "12/05/2024, 11:0{n} AM - {r}: {t}", '("{r}", "{t}"),',
    'Turn(role="{r}", text="{t}"),', "Post #{n} by {r}\n{t}\n", "{t} [{r}]", "“{t}” said the {r}.", "{r}_{n}: {t}",
    "In [{n}]: {r}\n{t}", "2024-05-01 09:0{n}:00 INFO {r} - {t}", "say('{r}', \"{t}\");", "said({n}, {r}, \"{t}\").",
    "{r} \"{t}\"", "{r} ..... {t}", "| {t} | {r} |", "Then the {r} said: “{t}”", "INSERT INTO turns (n, who) VALUES ({n}, '{r}', '{t}');",
    "ts=09:0{n} speaker={r} msg=\"{t}\"", "“{t}” — {r}\n",
]  # fmt: skip
NONE = [
    "| Teacher | Student |\n|---|---|\n| Explains | Listens |\n| Grades | Learns |\n| Talks | Writes |",
    "Tips:\n- Teachers should plan.\n- Students should read.\n- Teachers may rest.\n- Students may play.",
    "Roles:\n1. The teacher (plans it)\n2. The student (reads)\n3. The teacher (grades)\n4. The student (writes)",
    "The teacher walks in. The student sits.\nThe teacher smiles.\nThe student sighs.\nThe teacher leaves.",
    "The scenario:\n* teacher = strict\n* student = shy\n* teacher = kind\n* student = bold",
    "teacher_name=Ana\nstudent_name=Ben\nteacher_age=40\nstudent_age=12",
    "1 / teacher / 40\n2 / student / 12\n3 / teacher / 41\n4 / student / 13",
    "P1 = Teacher, P2 = Student. The scene is a classroom in which they argue for a long time.",
    "“Good,” said the teacher. She went home. The student stayed and read. “Bad,” said the student.",
    "Teacher preferences: lectures\nStudent preferences: games\nTeacher mood: angry\nStudent mood: bored",
    '{"teacher": ["strict", "kind"], "student": ["shy", "bold"]}',
    "Then the teacher said: “Good.”\nThen he left. “And now?” she asked.\nThen the student sighed: “Bad.”\n"  # noqa: ISC004
    "Soon the teacher asked: “So?”\nAnd the student said: “No.”",
    "The teacher told the student: “Read it.”\nThe student told the teacher: “I did.”\nThe teacher asked the student: “Did you?”",
    "S. Miller and T. Brown wrote it.\nS. Miller was first.\nT. Brown came second.\nS. Miller left.\nT. Brown stayed.",
]


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("roles", [("Teacher", "Student"), ("Lehrerin", "Schüler")])
def test_turns_in_a_frame_are_read(frame: str, roles: tuple[str, str]) -> None:
    lines = [frame.format(r=roles[i % 2], n=i + 1, t=text) for i, text in enumerate(SAID)]
    result = read("\n".join(lines) + "\n\nProbability: 0.8")
    assert isinstance(result, Conversation)
    assert [turn.role for turn in result.turns] == ["Teacher", "Student"] * 3
    assert [turn.text for turn in result.turns] == [*SAID]
    assert result.probability == 0.8


@pytest.mark.parametrize("text", NONE)
def test_lists_about_two_sides_are_no_conversation(text: str) -> None:
    assert isinstance(read(text), Rejection)


@pytest.mark.parametrize(
    "piece",
    [
        "teacher student ",
        "# teacher #\n# student #\n",
        "x [Teacher]\n\n",
        "1 / teacher / x\n2 / student / y.\n",
        "“x,” said the teacher.\n",
    ],
)
def test_the_time_is_linear_in_the_length(piece: str) -> None:
    short, long = (piece * (length // len(piece)) for length in (10_000, 40_000))
    assert takes_at_most(8, lambda: read(long), lambda: read(short))

"""Custom roles of a space: every layout of the corpus reads with other names for the two, and with three."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from edgen.core.values import Conversation, Rejection
from edgen.reading import read
from edgen.reading.one_turn.reader import TurnReply, read_turn
from edgen.reading.roles import TEACHER_STUDENT, RoleWords
from tests.cases import each
from tests.reading.test_corpus import CASES, expected, raw, shown

CUSTOM = RoleWords(("Guide", "Novice"), titled="Guide")
THREE = RoleWords(("Tutor", "Learner", "Grandparent"))
OTHER = {
    "teacher": "guide",
    "Teacher": "Guide",
    "TEACHER": "GUIDE",
    "student": "novice",
    "Student": "Novice",
    "STUDENT": "NOVICE",
}
# Entries that depend on the words teacher and student: other words for them, other languages, sentences about
# the student.
OWN_TO_THEM = (
    "languages/", "roles/", "json/assistant_and_user", "marker/by_a_side", "probability/chance_sentence",
    "probability/no_label_and_next_line",
)  # fmt: skip
SAID = ["Good morning.", "Hm, 1?", "Me too!", "Ok, b.", "Thanks (a lot).", "Bye."]
LAYOUTS = {
    "lines": "{0}: {1}",
    "bold": "**{0}:** {1}",
    "numbered": "{2}. {0}: {1}",
    "quoted": '{0}: "{1}"',
    "a bullet": "- {0}: {1}",
    "square brackets": "[{0}]: {1}",
    "a name beside it": "{0} (Ms. R): {1}",
    "people": "Kim ({0}): {1}",
}


def renamed(text: str) -> str:
    return re.sub("|".join(OTHER), lambda word: OTHER[word[0]], text)


@each("case", [case for case in CASES if not case.startswith(OWN_TO_THEM)])
def test_the_corpus_reads_with_other_names(case: str) -> None:
    facts: dict[str, Any] = json.loads(renamed(json.dumps(expected(case), ensure_ascii=False)))
    result = read(
        renamed(raw(case)),
        finish_reason=facts.get("finish_reason", "stop"),
        refusal=facts.get("refusal"),
        roles=CUSTOM,
    )
    kept = ("turns", "probability", "ended_by", "repairs", "reason")
    assert shown(result) == {key: facts[key] for key in kept if key in facts}


def three() -> list[tuple[str, str]]:
    """Return a conversation of three roles in turn."""
    return [(THREE.names[i % 3], said) for i, said in enumerate(SAID)]


def turns_of(result: Conversation | Rejection) -> list[tuple[str, str]] | str:
    return [(t.role, t.text) for t in result.turns] if isinstance(result, Conversation) else result.detail


@pytest.mark.parametrize("layout", LAYOUTS)
def test_three_roles_speak_in_every_layout(layout: str) -> None:
    text = "\n".join(LAYOUTS[layout].format(role, said, i) for i, (role, said) in enumerate(three(), 1))
    assert turns_of(read(text, roles=THREE)) == three()
    assert turns_of(read(f"Sure, here it is:\n\n{text}\n\nProbability: 0.4", roles=THREE)) == three()


@pytest.mark.parametrize(
    "value",
    [
        {"conversation": [{"role": role, "text": said} for role, said in three()], "probability": 0.4},
        [{role: said} for role, said in three()],
        [[role, said] for role, said in three()],
        [f"{role}: {said}" for role, said in three()],
    ],
)
def test_three_roles_speak_in_json(value: Any) -> None:
    assert turns_of(read(json.dumps(value), roles=THREE)) == three()
    assert turns_of(read(json.dumps(value)[:-1] + ",", roles=THREE)) == three()


def test_the_published_layout_holds_three_roles() -> None:
    lines = "\n".join(f'   {role}:  "{said}",' for role, said in three())
    result = read(f'Conversation:\n[\n{lines}\n]\nProbability:  "0.2",\n', roles=THREE)
    assert isinstance(result, Conversation)
    assert turns_of(result) == three()
    assert (result.probability, result.repairs) == (0.2, ())


def test_a_job_has_words_of_its_own_for_them() -> None:
    words = (("Tutor", ("Coach",)), ("Learner", ("Kim", "Sam")))
    text = "Coach: Hi.\nKim: Hello!\nGrandparent: Me too.\nCoach: Good.\n"
    said = [("Tutor", "Hi."), ("Learner", "Hello!"), ("Grandparent", "Me too."), ("Tutor", "Good.")]
    assert turns_of(read(text, roles=THREE, words=words)) == said


def test_one_role_alone_is_no_conversation() -> None:
    for role in THREE.names:
        assert isinstance(read(f"{role}: Hi.\n{role}: Hi again.\n", roles=THREE), Rejection)


@pytest.mark.parametrize("own", THREE.names)
def test_a_turn_of_one_role_is_told_from_those_of_the_others(own: str) -> None:
    for text in (f"{own}: Good.", f"**{own}:** Good.", json.dumps({"role": own, "text": "Good."})):
        assert read_turn(text, own, roles=THREE) == TurnReply("Good.", False, ("layout",))
    for other in THREE.names:
        found = read_turn(f"Good.\n**{other}:** And so on it goes.", own, roles=THREE)
        assert isinstance(found, Rejection)
        assert found.reason == ("two_turns" if other == own else "speaks_for_other")
    plain = "Teacher: a person who teaches.\nIs that so?"
    assert read_turn(plain, own, roles=THREE) == TurnReply(plain)


def test_names_may_be_words_that_patterns_use() -> None:
    roles = RoleWords(("OWNER", "NAME (1)", "a.b"))
    text = "OWNER: Hi.\nNAME (1): Hello!\na.b: Yes.\n"
    assert turns_of(read(text, roles=roles)) == [("OWNER", "Hi."), ("NAME (1)", "Hello!"), ("a.b", "Yes.")]
    assert TEACHER_STUDENT.find_other_role("Teacher") == "Student"


def test_a_heading_in_quotation_marks_under_an_empty_turn_is_no_error() -> None:
    read('Student:\r\n"conversation"\r\nTeacher:Teacher1. 1/5\\[End of conversation].S:\ufeff')


@pytest.mark.parametrize("name", ["ſtudent", "ſTUDENT", "STUDENT"])
def test_letters_that_only_match_where_case_is_ignored_are_a_role(name: str) -> None:
    found = read(
        f"Teacher: What is a cell?\n{name}: A small room.\nTeacher: And in biology?\n{name}: The unit of life."
    )
    assert isinstance(found, Conversation)
    assert [turn.role for turn in found.turns] == ["Teacher", "Student"] * 2

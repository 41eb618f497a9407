"""Speakers that are no roles of the space, in templates and in replies."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgen.core.values import Address, Rejection, RejectionReason, Request
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import load_plans
from edgen.planning.speakers import describe_reply, describe_templates, explain_rejection
from edgen.simulator.prompts.prompt_roles import find_unknown_speakers
from tests import ROOT

pytestmark = pytest.mark.unit

EDUCATION = (("Teacher",), ("Student",))
TUTORING = (("Tutor",), ("Learner",))
ADVICE = (("Advisor",), ("Student",))
SERVICE = (("Agent", "Clerk"), ("Customer",))
Speakers = tuple[tuple[str, ...], ...]


@pytest.mark.parametrize(
    ("prompt", "speakers", "names"),
    [
        ("Write a lesson.\nTeacher: <text>\nStudent: <text>\n", EDUCATION, ""),
        ("Write a lesson.\nTeacher: <text>\nStudent: <text>\n", TUTORING, "Teacher Student"),
        ("The learner talks.\nTutor: <text>\nStudent: <text>\n", TUTORING, "Student"),
        ("Write a lesson.\nTeacher: <text>\nStudent: <text>\n", ADVICE, "Teacher"),
        ("A dialogue between a teacher and a student on fractions.", TUTORING, "Teacher Student"),
        ("A talk between a doctor and a patient about pain.", SERVICE, "Doctor Patient"),
        ('Output JSON: [{"role": "Doctor", "text": "…"}, {"role": "Patient", "text": "…"}]', SERVICE, "Doctor Patient"),
        ('Output JSON: [{"role": "Tutor", "text": "…"}, {"role": "Learner", "text": "…"}]', TUTORING, ""),
        ("A clerk and a customer talk.\nClerk: <text>\nCustomer: <text>", SERVICE, ""),
        ("Lehrer: <text>\nSchüler: <text>", EDUCATION, ""),
        ("Lehrer: <text>\nSchüler: <text>", SERVICE, "Lehrer Schüler"),
        ("The agent helps a customer.\nSetting: <text>\nAgent: <text>\nCustomer: <text>", SERVICE, ""),
        ("The agent helps the customer. Begin with\nSummary: <text>\nThen let them talk.", SERVICE, ""),
        ("Write about photosynthesis; Calvin found the Calvin cycle.", SERVICE, ""),
    ],
)  # fmt: skip
def test_strangers_in_a_prompt(prompt: str, speakers: Speakers, names: str) -> None:
    assert " ".join(find_unknown_speakers(prompt, speakers)) == names


@pytest.mark.parametrize(
    ("reply", "speakers", "said"),
    [
        ("Tutor: Hi.\nStudent: Ho.\nTutor: So.\nStudent: No.", TUTORING, "Student speaks; this space has Tutor and Learner"),
        ("Doctor: Hi.\nPatient: Ho.", SERVICE, "Doctor and Patient speak; this space has Agent and Customer"),
        ("**Teacher:** Hi.\n\n**Student:** Ho.\n\n**Teacher:** So.", ADVICE, "Teacher speaks; this space has Advisor and Student"),
        ('{"conversation": [{"role": "Doctor", "text": "Hi."}]}', SERVICE, "Doctor speaks; this space has Agent and Customer"),
        ("Clerk: Hi.\nCustomer: Ho.\nClerk: So.", SERVICE, ""),
        ("Sure! Here is a warm lesson about the topic.", SERVICE, ""),
        ("Topic: fractions\nSummary: The lesson went well.\nIt ended early.", SERVICE, ""),
        ("Doctor: Hi.\nPatient: Ho.", (), ""),
    ],
)  # fmt: skip
def test_strangers_in_a_reply(reply: str, speakers: Speakers, said: str) -> None:
    asked = Request(Address(0, 0), (), seed=1, speakers=speakers)
    assert describe_reply(reply, asked) == said
    short = Rejection(RejectionReason.TOO_SHORT, "one turn only")
    assert explain_rejection(short, reply, asked).detail == (
        f"{said} (one turn only)" if said else "one turn only"
    )
    refused = Rejection(RejectionReason.REFUSED, "the model declined")
    assert explain_rejection(refused, reply, asked) == refused


@pytest.mark.parametrize("job", sorted(path.name for path in (ROOT / "jobs").glob("*.yaml")))
def test_no_shipped_job_is_doubted(job: str) -> None:
    path = ROOT / "jobs" / job
    _, plans = load_plans(path, [], AllowedFiles.of(path))
    assert [describe_templates(plan) for plan in plans.values()] == [[]] * len(plans)


TURNS = """You are in a conversation. This is how it goes:
Doctor: Where does it hurt?
Patient: In my knee.
Doctor: Since when?
Patient: Since Monday.
Say the next turn."""


@pytest.mark.parametrize(
    ("job", "use"),
    [
        one
        for one in (
            ("selfplay", "teacher"),
            ("selfplay", "student"),
            ("tutoring", "tutor"),
            ("homework_help", "tutor"),
            ("incident_response", "partner"),
        )
        if (ROOT / "jobs" / f"{one[0]}.yaml").exists()  # a copy without a domain has none of its jobs
    ],
)
def test_a_template_of_turns_that_shows_others_is_named(tmp_path: Path, job: str, use: str) -> None:
    path = ROOT / "jobs" / f"{job}.yaml"
    (tmp_path / "mine.j2").write_text(TURNS)
    given = [f"prompts.{use}={tmp_path / 'mine.j2'}"]
    _, plans = load_plans(path, given, AllowedFiles.of(path, given))
    doubts = [sentence for plan in plans.values() for sentence in describe_templates(plan)]
    assert doubts
    assert all(
        sentence.startswith("mine.j2: Doctor and Patient speak; this space has ") for sentence in doubts
    )


@pytest.mark.parametrize(
    "words", ["Note: be brief.\nTopic: knees.", 'Answer {"text": "…", "votes": 3}.', "You are a doctor."]
)
def test_other_labels_in_a_template_of_turns_are_no_speakers(tmp_path: Path, words: str) -> None:
    path = ROOT / "jobs" / "selfplay.yaml"
    (tmp_path / "mine.j2").write_text(f"You are the teacher, and talk with a student.\n{words}")
    given = [f"prompts.teacher={tmp_path / 'mine.j2'}"]
    _, plans = load_plans(path, given, AllowedFiles.of(path, given))
    assert [describe_templates(plan) for plan in plans.values()] == [[]] * len(plans)

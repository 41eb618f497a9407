"""Talk about a scenario's own values: in spaces without phrases, and with a space's own phrases."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgen.core.values import Conversation, Request
from edgen.planning.load import load_plan
from edgen.protocols.gated import PassedConversation
from edgen.reading.detect import loops
from edgen.simulator.text import respond

pytestmark = pytest.mark.unit

SPACE = """name: clinic
dimensions:
  complaint: {{label: Complaint, values: [{{value: a sore knee, detail: it hurts on stairs}}, {{value: a dry cough, detail: it is worse at night}}]}}
  treatment: {{label: The treatment, values: [rest and ice packs, warm honey tea]}}
  manner: [painfully shy at first, loud and impatient always]
roles:
  Doctor: {{sees: [treatment]}}
  Patient: {{sees: [complaint, manner]}}
{0}"""


def conversations(
    folder: Path, phrases: str = "", many: int = 4, **job: object
) -> list[tuple[dict[str, str], list[str]]]:
    folder.mkdir(exist_ok=True)
    (folder / "space.yaml").write_text(SPACE.format(phrases), encoding="utf-8")
    keys = {"protocol": "selfplay", **job}
    lines = [f"{key}: {value}" for key, value in keys.items()]
    (folder / "job.yaml").write_text(
        "\n".join(
            [
                "name: own",
                "seed: 1",
                "conversations: 9",
                "space: ./space.yaml",
                "backends: {default: {type: simulator}}",
                *lines,
            ]
        )
    )
    plan = load_plan(folder / "job.yaml")
    found = []
    for index in range(many):
        work = plan.make_task(index, 0).protocol
        request: Request = next(work)
        while True:
            try:
                request = work.send(
                    respond(
                        request.messages,
                        seed=request.seed,
                        protocol=request.protocol,
                        speakers=request.speakers,
                        scene=request.scene,
                    )
                )
            except StopIteration as end:
                result = end.value.result if isinstance(end.value, PassedConversation) else end.value
                assert isinstance(result, Conversation), result
                found.append(
                    (plan.scenario(index).values, [f"{turn.role}: {turn.text}" for turn in result.turns])
                )
                break
    return found


@pytest.mark.parametrize("protocol", ["selfplay", "oneshot"])
def test_a_space_without_phrases_is_spoken_of_by_its_values(tmp_path: Path, protocol: str) -> None:
    for values, turns in conversations(tmp_path, protocol=protocol):
        text = "\n".join(turns)
        assert values["complaint"] in text
        assert values["treatment"] in text
        assert values["manner"] not in text
        assert "topic" not in text
        doctor = [turn for turn in turns if turn.startswith("Doctor")]
        first = next(turn for turn in turns if values["complaint"] in turn)
        assert first not in doctor, "who does not see it does not say it first"


PHRASES = """phrases:
  said:
    manner: {painfully shy at first: [Um.], loud and impatient always: [Hurry up!]}
  roles:
    Doctor:
      opens: ["What brings you here?"]
      says: ["So it is “{heard}”.", "Then {treatment} will help."]
      closes: [Get well soon.]
    Patient:
      says: ["{manner} I have this: {complaint}.", "And {complaint.detail}."]
      closes: [Thank you.]
      answers: [{to: [will help], says: ["Is {treatment} enough?"]}]
"""


def test_phrases_are_said_in_order_and_answers_come_first(tmp_path: Path) -> None:
    for values, turns in conversations(tmp_path, PHRASES):
        begins = "Um." if values["manner"].startswith("painfully") else "Hurry up!"
        assert turns[:5] == [
            "Doctor: What brings you here?",
            f"Patient: {begins} I have this: {values['complaint']}.",
            f"Doctor: So it is “{values['complaint']}”.",
            turns[3],
            f"Doctor: Then {values['treatment']} will help.",
        ]
        assert turns[3].startswith("Patient: And it ")
        assert turns[5] in (f"Patient: Is {values['treatment']} enough?", "Patient: Thank you.")


def test_phrases_change_no_scenario_and_the_same_job_says_the_same(tmp_path: Path) -> None:
    first, again = conversations(tmp_path / "a", PHRASES), conversations(tmp_path / "b", PHRASES)
    assert first == again
    assert [one for one, _ in first] == [one for one, _ in conversations(tmp_path / "c")]


FEW = """phrases:
  roles:
    Doctor:
      says: ["Then {treatment} will help.", "As I said: {treatment} will help.", "Then {treatment} will help."]
    Patient:
      says: ["I have this: {complaint}.", "{complaint.detail}.", "{complaint.detail}."]
      answers: [{to: [will help], says: ["Is {treatment} enough for it?"]}]
"""


@pytest.mark.parametrize("phrases", ["", FEW])
def test_nobody_says_a_turn_twice_where_a_talk_is_longer_than_what_there_is_to_say(
    tmp_path: Path, phrases: str
) -> None:
    for _, turns in conversations(tmp_path, phrases, protocol="oneshot", many=20):
        for role in ("Doctor", "Patient"):
            said = [turn for turn in turns if turn.startswith(role)]
            assert not [turn for i, turn in enumerate(said) if loops(turn, said[:i])], turns


def test_answers_with_facts_for_some_scenarios_also_in_the_last_turn(tmp_path: Path) -> None:
    phrases = """phrases:
  facts: {complaint: {a sore knee: {advice: rest it}, a dry cough: {advice: drink a lot}}}
  roles:
    Doctor: {opens: [Where does it hurt?], says: [What did you do about it?]}
    Patient:
      says: [I have something.]
      answers:
        - {to: did you do, when: {complaint: a sore knee}, says: "For my knee, I {complaint.advice}."}
        - {to: did you do, says: "I {complaint.advice}."}
      closes: [Goodbye.]
"""
    said = conversations(tmp_path / "own", phrases, selfplay="{first: doctor, max_turns: 4}")
    assert {values["complaint"] for values, _ in said} == {"a sore knee", "a dry cough"}
    for values, turns in said:
        knee = values["complaint"] == "a sore knee"
        assert turns[1] == "Patient: I have something."
        assert turns[3].startswith(f"Patient: {'For my knee, I rest it' if knee else 'I drink a lot'}.")

"""A template in any words can be rehearsed: conversations and single turns, in its own layout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgen.core.values import Conversation, Rejection, Request
from edgen.planning.load import load_plan
from edgen.planning.plan import Plan
from edgen.protocols.base import Result
from edgen.simulator.text import respond
from tests.cases import each
from tests.dose import dose
from tests.simulator.own_templates import AGENTS, HELD_OUT, LATER, SEEN

pytestmark = pytest.mark.unit

SPACE = """name: own
dimensions:
  topic: [Adding fractions, Comparing fractions]
  mood: [shy, talkative]
roles:
  {0}: {{sees: [topic]}}
  {1}: {{sees: [topic, mood]}}
"""


def planned(folder: Path, roles: tuple[str, str], **job: object) -> Plan:
    values = {"name": "own", "conversations": 20, "space": "./space.yaml", "asks": 1, **job}
    (folder / "space.yaml").write_text(SPACE.format(*roles))
    (folder / "job.yaml").write_text(json.dumps({**values, "backends": {"default": {"type": "simulator"}}}))
    return load_plan(folder / "job.yaml")


def oneshot(folder: Path, roles: tuple[str, str], template: str) -> Plan:
    (folder / "mine.j2").write_text(template)
    return planned(folder, roles, prompt="./mine.j2")


def play(plan: Plan, index: int, *, served: bool = False) -> tuple[Result, str]:
    """Return a simulated conversation and its last reply; a `served` simulator knows the messages alone."""
    work = plan.protocol.start(plan.scenario(index), 0, plan.prompts, plan.rules)
    request: Request = next(work)
    while True:
        known = {} if served else {"protocol": request.protocol, "speakers": request.speakers}
        reply = respond(request.messages, seed=request.seed, **known)  # type: ignore[arg-type]
        try:
            request = work.send(reply)
        except StopIteration as end:
            return end.value, reply.text


@pytest.mark.long
@each("name", [*SEEN, *HELD_OUT, *LATER])
def test_a_template_in_any_words_gets_conversations(name: str, tmp_path: Path) -> None:
    roles, template = {**SEEN, **HELD_OUT, **LATER}[name]
    plan = oneshot(tmp_path, roles, template)
    for index in range(dose(2, 5)):
        result, text = play(plan, index)
        assert isinstance(result, Conversation), (name, result, text)
        assert {turn.role for turn in result.turns} == {*roles}
        asks = any(word in template.lower() for word in ("probab", "likelihood"))
        assert (result.probability is not None) == asks, (name, text)


def test_most_templates_are_understood_without_a_word_about_who_asks(tmp_path: Path) -> None:
    """A served simulator has the messages alone."""
    failed = []
    for name, (roles, template) in {**SEEN, **HELD_OUT, **LATER}.items():
        (tmp_path / name).mkdir()
        result, _ = play(oneshot(tmp_path / name, roles, template), 0, served=True)
        if isinstance(result, Rejection):
            failed.append(name)
    assert len(failed) <= 8, failed


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("One Tutor, one Learner: {{ topic }}.\n**Tutor:** ...\n**Learner:** ...", "**Tutor:** "),
        ("Tutor and Learner on {{ topic }}.\n<turn speaker='tutor'>...</turn>", '<turn speaker="tutor">'),
        ("Tutor and Learner on {{ topic }}.\n### Tutor\n...\n### Learner\n...", "### Tutor\n"),
        ("Tutor and Learner on {{ topic }}, numbered: 1. Tutor: ... 2. Learner: ...", "Tutor: "),
        ('Tutor and Learner on {{ topic }}: JSON {"turns": [{"who": "Tutor", "says": "..."}]}', '"says": '),
        ("Tutor and Learner on {{ topic }}, each line as [Name] text.\n[Tutor] ...", "[Tutor] "),
        ("Tutor and Learner on {{ topic }}.\nTUTOR: ...\nLEARNER: ...", "TUTOR: "),
    ],
)
def test_the_layout_that_is_shown_is_the_one_of_the_answer(template: str, shown: str, tmp_path: Path) -> None:
    result, text = play(oneshot(tmp_path, ("Tutor", "Learner"), template), 0)
    assert isinstance(result, Conversation)
    assert shown in text


@pytest.mark.parametrize(
    ("wish", "least", "most"),
    [
        ("8 to 10 turns", 8, 10),
        ("at most 6 messages", 2, 6),
        ("exactly five exchanges", 10, 10),
        ("12 lines", 12, 12),
    ],
)
def test_a_conversation_is_as_long_as_asked_for(wish: str, least: int, most: int, tmp_path: Path) -> None:
    plan = oneshot(tmp_path, ("Heron", "Fox"), f"Heron and Fox talk about {{{{ topic }}}} in {wish}.")
    for index in range(6):
        result, _ = play(plan, index)
        assert isinstance(result, Conversation)
        assert least <= len(result.turns) <= most


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (
            "Write a dialogue between a tutor and a child about {{ topic }}.",
            "The prompt does not name Learner.",
        ),
        ("Something nice about {{ topic }}, please.", "The prompt does not name Tutor or Learner."),
    ],
)
def test_a_template_without_both_roles_is_told_so(template: str, said: str, tmp_path: Path) -> None:
    result, _ = play(oneshot(tmp_path, ("Tutor", "Learner"), template), 0)
    assert isinstance(result, Rejection)
    assert said in result.detail


def test_a_jobs_own_words_for_its_roles_count(tmp_path: Path) -> None:
    (tmp_path / "mine.j2").write_text("Write a dialogue between a tutor and a child about {{ topic }}.")
    plan = planned(tmp_path, ("Tutor", "Learner"), prompt="./mine.j2", role_words={"Learner": ["child"]})
    result, text = play(plan, 0)
    assert isinstance(result, Conversation)
    assert "Child: " in text


@pytest.mark.parametrize("name", AGENTS)
def test_agents_talk_by_free_prose(name: str, tmp_path: Path) -> None:
    roles, first, second, closing = AGENTS[name]
    prompts = {roles[0].lower(): "./one.j2", roles[1].lower(): "./other.j2"}
    (tmp_path / "one.j2").write_text(first)
    (tmp_path / "other.j2").write_text(second)
    settings: dict[str, object] = {"max_turns": 12}
    if closing is not None:
        (tmp_path / "closing.j2").write_text(closing)
        prompts["closing"], settings["closing"] = "./closing.j2", roles[1].lower()
    plan = planned(tmp_path, roles, protocol="selfplay", prompts=prompts, selfplay=settings, asks=3)
    ends = set()
    for index in range(8):
        result, text = play(plan, index)
        assert isinstance(result, Conversation), (result, text)
        assert (result.probability is not None) == (closing is not None)
        ends.add(result.ended_by)
    assert (ends != {None}) == ("[end of conversation]" in first + second)

"""People play roles on pages: their view, their messages; nothing is lost or asked twice."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import edgen
from bench.play import play
from edgen.store.people.mailbox import Mailbox
from tests import ROOT
from tests.cli.command import call
from tests.web.players import SELFPLAY, Pages, Player, generate, token_in, wait_for_mailbox

pytestmark = pytest.mark.integration

ONE = ("conversations=1", "replicates=1", "branch=null")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


def test_a_person_is_the_student_from_invitation_to_record(run: Path) -> None:
    making = generate(SELFPLAY, run, *ONE)
    wait_for_mailbox(run)
    with Pages(run) as pages:
        links = pages.invite("student", "ann", "late")
        ann = Player.enter("ann", pages.port, links["ann"])
        assert ann.until("answer") == "answer"
        assert "You are the Student" in ann.page
        assert "student preference" in ann.page
        assert "teacher preference" not in ann.page  # facts that the role does not see
        assert len(ann.turns) == 1
        again = ann.page
        assert ann.look() == "answer"  # reload: the same form
        assert ann.form()["key"] in again
        assert "write something first" in ann.browser.post(
            "/play/answer", [*ann.form().items(), ("f:text", " ")]
        )
        ann.say("I have a question <b>here</b>. What is it about?")
        old = {**ann.form(), "f:text": "Sent from a page before."}
        assert ann.until("answer") == "answer"
        assert ann.turns[1] == "I have a question <b>here</b>. What is it about?"
        assert "<b>here</b>" not in ann.page
        ann.browser.post("/play/answer", {**old, "key": "0" * 64})  # the back button: nothing happens
        late = Player.enter("late", pages.port, links["late"])
        assert late.look() == "lobby"  # the only conversation is ann's
        ann.say("Thank you, that helps me.", close=True)
        ann.until("answer")
        assert "The lesson is over" in ann.page  # the closing question, as buttons
        ann.say("")
        assert ann.until("over") == "over"
        assert "away for too long" not in ann.page
        assert making.wait(180) == 0
        first, *invited = pages.figures()
        assert first[:3] == ["ann", "1", "3"]  # one conversation: two turns, and the closing question
        assert first[4] == "0"
        assert [(row[0], row[3]) for row in invited] == [("ann", "3"), ("late", "0")]
    record = next(iter(edgen.open(run).conversations()))
    texts = [turn.text for turn in record.turns]
    assert "I have a question <b>here</b>. What is it about?" in texts
    assert "Thank you, that helps me." in texts
    assert "Sent from a page before." not in texts
    assert record.ended_by == "Student"
    assert call("validate", run) == 0
    given = Mailbox(run).list_done_requests()
    assert {one.person for one in given} == {"ann"}
    times = [one.times for one in given]
    assert all(one.asked is not None and one.seen is not None for one in times)
    assert all((one.asked or 0) <= (one.seen or 0) <= one.at and one.typed is None for one in times)


def test_two_people_meet_in_the_lobby_and_see_only_their_own_side(run: Path) -> None:
    making = generate(
        SELFPLAY, run, "conversations=2", *ONE[1:], "selfplay.closing=null", people=("teacher", "student")
    )
    wait_for_mailbox(run)
    with Pages(run) as pages:
        teachers = pages.invite("teacher", "tea", "tom")
        students = pages.invite("student", "sue")
        tea = Player.enter("tea", pages.port, teachers["tea"])
        assert tea.look() == "lobby"  # no partner to talk with
        sue = Player.enter("sue", pages.port, students["sue"])
        sue.look()
        tea.until("answer")
        assert sue.until("wait") == "wait"
        tom = Player.enter("tom", pages.port, teachers["tom"])
        assert tom.look() == "lobby"
        assert "teacher preference" in tea.page
        assert "student preference" not in tea.page
        assert typing(sue) is False
        type_(tea)
        assert typing(sue) is True
        assert typing(tea) is False
        tea.say("Hello Sue, what do you know about it already?")
        sue.until("answer")
        assert sue.turns == ["Hello Sue, what do you know about it already?"]
        assert "teacher preference" not in sue.page
        sue.say("Nothing yet. I am glad to be here.", close=True)
        assert tea.until("over") == "over"
        assert sue.until("over") == "over"
        token = tea.page.split("game token is <code>")[1][:8]
        assert token in sue.page
        sue.page = sue.browser.post("/play/next", sue.form() | {"token": token_of(sue)})
        tom.until("answer")  # the person who has waited longest
        tom.say("Welcome. Shall we begin with an example?")
        sue.until("answer")
        sue.say("Please do. I learn by examples.", close=True)
        assert tom.until("over") == "over"
        assert making.wait(180) == 0
    first, *others = Mailbox(run).list_done_requests()
    assert first.times.seen is not None
    assert first.times.typed is not None
    assert first.times.seen <= first.times.typed <= first.times.at
    assert all(one.times.typed is None for one in others)  # their browsers have no scripts
    answers = Mailbox(run).list_done_requests()
    assert len({(one.person, one.request.role, one.token) for one in answers}) == 4
    assert len({one.token for one in answers}) == 2


def token_of(player: Player) -> str:
    return token_in(player.page)


def typing(player: Player) -> bool:
    return bool(json.loads(player.browser.get("/play/state"))["typing"])


def type_(player: Player) -> None:
    player.browser.post("/play/typing", player.form())


def test_a_person_who_leaves_ends_the_conversation_with_that_reason(run: Path) -> None:
    making = generate(SELFPLAY, run, "conversations=2", *ONE[1:], "backends.student.wait=2s")
    wait_for_mailbox(run)
    with Pages(run) as pages:
        link = pages.invite("student", "ann")["ann"]
        ann = Player.enter("ann", pages.port, link)
        ann.until("answer")
        ann.until("over", seconds=20)  # two seconds of silence
        assert "away for too long" in ann.page
        assert pages.figures()[0][1:3] == ["1", "0"]
        ann.page = ann.browser.post("/play/next", {"token": token_of(ann)})
        ann.until("answer")
        ann.page = ann.browser.post("/play/leave", {"token": token_of(ann)})
        ann.until("over")
        assert making.wait(180) in (0, 3, 4)
    assert edgen.open(run).status.rejected == {"left": 2}


def test_kills_lose_no_answer_and_ask_nobody_twice(run: Path) -> None:
    settings = ("conversations=2", *ONE[1:], "selfplay.closing=null", "selfplay.max_turns=9")
    making = generate(SELFPLAY, run, *settings)
    wait_for_mailbox(run)
    pages = Pages(run)
    links = pages.invite("student", "ann", "ben")
    players = [Player.enter(name, pages.port, link) for name, link in links.items()]
    keys: list[str] = []
    try:
        for number in range(8):
            for player in players:
                if player.until("answer", "over") == "over":
                    continue
                keys.append(player.form()["key"])
                player.say(f"{player.name} asks question {number}, which nobody asked before.")
            if number in (1, 4, 6):
                making.kill()
                making.wait()
                making = generate(SELFPLAY, run, *settings)
            if number in (2, 4):
                pages = pages.again()
        for player in players:
            player.until("over")
        _, err = making.communicate(timeout=180)
        assert making.returncode == 0, err
    finally:
        pages.end()
        making.kill()
    assert len(set(keys)) == len(keys) == 8  # four turns each, each asked once
    said = [turn.text for record in edgen.open(run).conversations() for turn in record.turns]
    for player in players:
        assert len(player.sent) == 4
        assert all(said.count(text) == 1 for text in player.sent)


def test_random_kills_lose_no_answer_and_ask_nobody_twice(tmp_path: Path) -> None:
    made = play(tmp_path, pairs=2, pause=0.3, kills=6, seed=int(time.time()) % 10_000)
    assert made.kills > 0
    assert made.sent >= 2 * 4
    assert (made.missing, made.twice) == (0, 0)


def test_consent_questions_and_a_backend_that_stands_in(run: Path) -> None:
    people = ROOT / "questionnaires" / "people"
    settings = [f"backends.student.{name}={people / file}" for name, file in
                (("consent", "consent.md"), ("before", "before.yaml"), ("after", "after.yaml"))]  # fmt: skip
    making = generate(
        SELFPLAY, run, *ONE, *settings, "backends.student.stand_in=teacher", "selfplay.max_turns=6"
    )
    wait_for_mailbox(run)
    with Pages(run) as pages:
        ann = Player.enter("ann", pages.port, pages.invite("student", "ann")["ann"])
        assert ann.look() == "paper"
        assert "recorded for research" in ann.page
        ann.send_paper({})
        assert "Some questions first" in ann.page
        ann.send_paper({"f:experience": "4"})
        assert "choose one" in ann.page  # one is missing, and the other is kept
        assert 'value="4" checked' in ann.page
        ann.send_paper({"f:experience": "4", "f:tutors": "2"})
        ann.until("answer")
        ann.say("I would like to hear more about that.")
        ann.until("answer")
        ann.page = ann.browser.post("/play/leave", {"token": token_of(ann)})
        assert "Some questions about it" in ann.page
        ann.send_paper({"f:helpful": "7", "f:natural": "6", "f:remarks": "<i>Fine</i>"})
        assert ann.until("over") == "over"
        assert making.wait(180) == 0
        answers = pages.answers()
    (record,) = edgen.open(run).conversations()
    assert len(record.turns) == 6  # the stand-in continued
    asked = {one["unit"].split()[0]: one for one in answers if "unit" in one}
    assert asked["consent"]["value"] is True
    assert asked["before"]["value"] == {"experience": 4, "tutors": 2}
    assert asked["after"]["value"] == {"helpful": 7, "natural": 6, "remarks": "<i>Fine</i>"}
    turns = [one for one in answers if "step" in one]
    assert [one["left"] for one in turns] == [False, True]
    assert turns[0]["conversation"] == record.id
    assert turns[0]["seconds"] >= 0

"""People as judges, annotators and writers, and in rollouts, on pages of another process."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

import edgen
from edgen.store.ledger import LedgerReader
from edgen.store.people.mailbox import Mailbox
from tests import ROOT, fork_server
from tests.cli.command import call
from tests.web.players import SELFPLAY, Pages, Player, generate, token_in, wait_for_mailbox
from tests.web.test_voting import make_run

pytestmark = pytest.mark.integration

MOST = 40  # answers


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("asked") / "run")


def _asking(run: Path, *command: str) -> fork_server.Popen:
    asked = fork_server.Popen(
        command[0], str(run), *command[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    end = time.monotonic() + 180
    while not (run / "people" / "waiting.db").exists():
        assert time.monotonic() < end
        assert asked.poll() is None, asked.communicate()
        time.sleep(0.1)
    return asked


def _prefer_the_later(ann: Player) -> None:
    """Choose the conversation with the later reply, on either side."""
    first, second = map(int, re.findall(r"Reply (\d+) of", ann.page))
    better = {"f:better": "1" if first > second else "2"}
    ann.page = ann.browser.post("/play/answer", ann.form() | better)


def _answer_all(
    run: Path,
    role: str,
    asked: fork_server.Popen,
    answer: Callable[[Player], object],
    codes: Collection[int] = (0,),
) -> list[str]:
    """Answer until the command ends, with one of these codes; return the pages that were answered."""
    seen: list[str] = []
    try:
        wait_for_mailbox(run)
        with Pages(run) as pages:
            ann = Player.enter("ann", pages.port, pages.invite(role, "ann")["ann"])
            end = time.monotonic() + 180
            while asked.poll() is None and len(seen) < MOST:
                assert time.monotonic() < end, ann.page
                if (state := ann.look()) == "answer":
                    seen.append(ann.page)
                    answer(ann)
                elif state == "over":
                    ann.browser.post("/play/next", {"token": token_in(ann.page)})
                else:
                    time.sleep(0.05)
        _, err = asked.communicate(timeout=180)
        assert asked.returncode in codes, err
    finally:
        asked.kill()
        asked.wait()
    return seen


def test_a_person_judges_pairs_side_by_side(run: Path) -> None:
    asked = _asking(
        run,
        "pairs",
        "--signal",
        "oracle",
        "--set",
        "backends.judge={type: human}",
        "--set",
        "pairs.compare=conversation",
    )
    seen = _answer_all(run, "judge", asked, _prefer_the_later)
    assert len(seen) == 10  # five pairs in both orders, and each once
    first = seen[0]
    assert first.index("<h2>The first</h2>") < first.index("<h2>The second</h2>")
    assert "Which is better?" in first
    assert "You are the" not in first
    assert "begins\n" not in first  # the marks of a model's prompt
    assert "&lt;script&gt;" in first
    pairs = (run / "pairs" / "pairs.jsonl").read_text("utf-8").splitlines()
    assert len(pairs) == 5  # both orders agree
    assert all('"human"' in pair for pair in pairs)


def test_a_person_labels_turns_with_their_definitions(run: Path) -> None:
    command = ("annotate", "--labels", "teacher_moves", "--set", "backends.annotator={type: human}")
    seen = _answer_all(run, "annotator", _asking(run, *command), lambda ann: ann.say(""))
    assert seen
    assert "(1) Teacher" in seen[0]
    assert all(page.count('type="checkbox"') + page.count('type="radio"') > 1 for page in seen)
    assert list((run / "layers" / "teacher_moves").iterdir())


def test_a_second_question_about_the_same_pairs_reaches_people(run: Path) -> None:
    for judge in ("first", "second"):  # another judge, and the same pairs, which have ended
        setting = f"backends.judge={{type: human, model: {judge}}}"
        asked = _asking(run, "pairs", "--signal", "oracle", "--set", setting, "--credit", "whole")
        assert len(_answer_all(run, "judge", asked, lambda ann: ann.say(""), (0, 3))) == 10


def test_two_annotators_are_two_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run")  # the run of the other tests has their answers
    command = ("annotate", "--labels", "quality", "--unit", "conversation", "--annotators", "2")
    asked = _asking(run, *command, "--set", "backends.annotator={type: human}")
    with Pages(run) as pages:
        links = pages.invite("annotator", "ann", "ben")
        people = [Player.enter(name, pages.port, link) for name, link in links.items()]
        end = time.monotonic() + 180
        while asked.poll() is None:
            assert time.monotonic() < end
            for person in people:
                if person.look() == "answer":
                    person.say("")
            time.sleep(0.02)
    assert asked.wait() == 0
    with Mailbox(run) as mailbox:
        given = [one for one in mailbox.list_done_requests() if one.request.role == "annotator"]
    units = [(one.person, one.request.address.scenario, one.request.address.task) for one in given]
    assert len(units) == len({*units}) == 2 * 10
    capsys.readouterr()
    assert call("annotate", run, "--layer", "quality") == 0
    assert "identical requests" not in capsys.readouterr().out


def test_people_play_on_in_rollouts(tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = (
        "conversations=1",
        "replicates=2",
        "branch=null",
        "selfplay.max_turns=4",
        "selfplay.closing=null",
    )
    options = [part for setting in settings for part in ("--set", setting)]
    assert call("generate", SELFPLAY, "-o", run, *options) == 0
    asked = _asking(run, "pairs", "--signal", "oracle", "--credit", "rollouts", "--rollouts", "1", "--set",
                    "backends.student={type: human}")  # fmt: skip
    texts = itertools.count()
    seen = _answer_all(
        run, "student", asked, lambda ann: ann.say(f"Why is that so, for the {next(texts)}th time?"), (0, 3)
    )
    assert seen
    assert "You are the Student" in seen[0]
    with LedgerReader(next((run / "pairs" / "rollouts").glob("*.db"))) as played:
        records = [record for _, _, record in played.read_outcomes(0).values() if record is not None]
    assert any(b"for the 0th time" in record for record in records)


def test_a_person_writes_a_whole_conversation_in_prose(tmp_path: Path) -> None:
    run = tmp_path / "run"
    making = generate(ROOT / "jobs" / "quickstart.yaml", run, "conversations=1", people=("default",))
    text = "Teacher: What is a market?\nStudent: A place to trade.\nTeacher: Right.\nStudent: Thank you. [end of conversation]"
    seen = _answer_all(run, "default", making, lambda ann: ann.say(f"{text}\n\nProbability: 0.7"))
    assert len(seen) == 1
    (record,) = edgen.open(run).conversations()
    assert [turn.text for turn in record.turns][:2] == ["What is a market?", "A place to trade."]
    assert call("validate", run) == 0


def test_a_person_writes_texts_for_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Paraphrases and wrong replies, a line each; one that only repeats the turn is retried."""
    run = make_run(tmp_path / "run")
    setting = "backends.writer={type: human}"
    for kind, says in (("paraphrases", "in other words"), ("wrong", "wrong replies")):
        command = ("annotate", "--write", kind, "--texts", "2", "--after", "2", "--set", setting)
        asked = _asking(run, *command, "--agent", "Teacher")
        again = iter([True])

        def write(ann: Player, again: Iterator[bool] = again, kind: str = kind) -> None:
            if next(again, False):
                said = ann.turns[-1]
                ann.page = ann.browser.post("/play/answer", ann.form() | {"f:texts": f"{said}\n{said}"})
                return
            texts = f"1. The first of the {kind}.\n\n- And <b>another</b> of the {kind}."
            ann.page = ann.browser.post("/play/answer", ann.form() | {"f:texts": texts})

        seen = _answer_all(run, "writer", asked, write)
        assert len(seen) == 11  # ten conversations with one such turn, and a retry
        assert "Texts: 2, one on each line" in seen[0]
        assert says in seen[0]
        assert "begins" not in seen[0]  # the marks of a model's prompt
        assert "(1) Teacher" in seen[0]
        assert any("Your answer could not be used" in page for page in seen)
        lines = (run / "candidates" / f"{kind}.jsonl").read_text("utf-8").splitlines()
        texts = {text for line in lines for text in json.loads(line)["texts"]}
        assert texts == {f"The first of the {kind}.", f"And <b>another</b> of the {kind}."}
        assert len(lines) == 10
    asked = _asking(
        run, "annotate", "--write", "wrong", "--after", "0", "--agent", "Teacher", "--set", setting
    )
    with Pages(run) as pages:
        bob = Player.enter("bob", pages.port, pages.invite("writer", "bob")["bob"])
        assert bob.until("answer") == "answer"
        for given in ("", "one", "a\nb\nc\nd"):
            page = bob.browser.post("/play/answer", bob.form() | {"f:texts": given})
            assert f"Expected 3, got {len(given.split())}" in page
            assert given in page  # written texts stay
    asked.send_signal(signal.SIGINT)
    assert asked.wait(180) == 130
    out = tmp_path / "pool"
    assert call("export", run, "--to", "dstc7", "-o", out) in (0, 3)
    assert call("validate", run) == 0


def test_a_person_rates_adherence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run")
    asked = _asking(run, "stats", "--adherence", "10", "--set", "backends.judge={type: human}", "--json")

    def rate(ann: Player) -> None:
        names = re.findall(r'type="radio" name="(f:\w+)"', ann.page)
        ann.page = ann.browser.post("/play/answer", ann.form() | dict.fromkeys(names, '"yes"'))

    seen = _answer_all(run, "judge", asked, rate)
    assert len(seen) == 10
    assert "Does the student ask to be taught" in seen[0]
    assert "begins" not in seen[0]
    assert "&lt;script&gt;" in seen[0]
    capsys.readouterr()
    assert call("stats", run, "--adherence", "10", "--set", "backends.judge={type: human}", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert "adherence" in json.dumps(told)


def test_a_person_labels_all_turns_of_a_conversation_together(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    command = (
        "annotate",
        "--labels",
        "teacher_moves",
        "--together",
        "--set",
        "backends.annotator={type: human}",
    )
    seen = _answer_all(run, "annotator", _asking(run, *command), lambda ann: ann.say(""))
    assert len(seen) == 10
    assert "(2) Teacher" in seen[0]
    lines = (run / "layers" / "teacher_moves" / "labels.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 20

"""People as a judge and as an annotator: a command asks in one process, and a person answers on pages."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import fork_server
from tests.web.players import Pages, Player
from tests.web.test_voting import make_run

pytestmark = pytest.mark.integration

MOST = 40  # answers


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("asked") / "run")


def _asking(run: Path, *command: str) -> subprocess.Popen[str]:
    asked = fork_server.popen(
        command[0], str(run), *command[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 60
    while not (run / "people" / "waiting.db").exists():
        assert time.monotonic() < end
        assert asked.poll() is None, asked.communicate()
        time.sleep(0.1)
    return asked


def _prefer_the_later(ann: Player) -> None:
    """Take the conversation with the later reply, on whichever side it is."""
    first, second = map(int, re.findall(r"Reply (\d+) of", ann.page))
    better = {"f:better": "1" if first > second else "2"}
    ann.page = ann.browser.post("/play/answer", ann.form() | better)


def _answer_all(
    run: Path, role: str, asked: subprocess.Popen[str], answer: Callable[[Player], object]
) -> list[str]:
    """Answer until the command ends; return the pages that were answered."""
    seen: list[str] = []
    try:
        with Pages(run) as pages:
            ann = Player.enter("ann", pages.port, pages.invite(role, "ann")["ann"])
            end = time.monotonic() + 90
            while asked.poll() is None and len(seen) < MOST:
                assert time.monotonic() < end, ann.page
                if ann.look() == "answer":
                    seen.append(ann.page)
                    answer(ann)
                else:
                    time.sleep(0.05)
        _, err = asked.communicate(timeout=30)
        assert asked.returncode == 0, err
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

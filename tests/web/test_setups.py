"""The pages on published set-ups, followed literally in an empty folder, command by command."""

from __future__ import annotations

import contextlib
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT, fork_server
from tests.web.players import Pages, Player, token_in, wait_for_mailbox

pytestmark = pytest.mark.integration


def _commands(page: str) -> list[list[str]]:
    """Return the commands of a page in their order, in the words of a shell."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines() if line.strip()]


def _run(command: list[str], folder: Path, typed: str = "") -> str:
    made = fork_server.finish(*command[1:], cwd=folder, text=typed)
    assert made.returncode in (0, 3), (command, made.stdout, made.stderr)
    return made.stdout


@contextlib.contextmanager
def _waiting(command: list[str], folder: Path) -> Iterator[fork_server.Popen]:
    """Start a command that waits for people."""
    process = fork_server.Popen(*command[1:], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=180)


@pytest.mark.parametrize(
    ("page", "role", "typed", "exported"),
    [
        (
            "setup_student.md",
            "student",
            "y\n4\n2\n" + "Is it “di”, number {}?\n1\n" * 12 + "7\n7\nFine.\n",
            "cima",
        ),
        pytest.param(
            "setup_wizard.md", "dispatcher", "y\n" + "1\n" * 130, "crwiz", marks=pytest.mark.only_long
        ),
    ],
)
def test_a_person_plays_and_the_data_is_exported(
    page: str, role: str, typed: str, exported: str, tmp_path: Path
) -> None:
    init, *commands = _commands(page)
    _run(init, tmp_path)
    for number, command in enumerate(one for one in commands if one[1] == "play"):
        if number == 0:
            said = _run(command, tmp_path, typed.format(*range(99)))
            assert "The conversation" in said
    (generate,) = (one for one in commands if one[1] == "generate")
    (web,) = (one for one in commands if one[1] == "web")
    run = tmp_path / web[2]
    with _waiting(generate, tmp_path) as making:
        wait_for_mailbox(run)
        with Pages(run) as pages:
            ann = Player.enter("ann", pages.port, pages.invite(role, "ann")["ann"])
            for turn in range(400):
                if making.poll() is not None:
                    break
                state = ann.until("paper", "answer", "over", seconds=120)
                if state == "paper":
                    ann.send_paper(
                        {
                            f"f:{name}": "3"
                            for name in ("experience", "tutors", "helpful", "natural", "remarks")
                        }
                    )
                elif state == "answer":
                    ann.say(f"Is it thing number {turn}?")
                else:
                    ann.page = ann.browser.post("/play/next", {"token": token_in(ann.page)})
                    if making.poll() is None and ann.state == "lobby":
                        break
        out, _ = making.communicate(timeout=120)
        assert making.returncode in (0, 3), out
    for command in commands[commands.index(web) + 1 :]:
        _run(command, tmp_path)
    assert [*(tmp_path / exported).rglob("*.json*")]
    assert (run / "inputs" / "consent.md").exists()


def test_people_rate_pairs(tmp_path: Path) -> None:
    init, generate, web, *rest = _commands("setup_rater.md")
    _run(init, tmp_path)
    _run(generate, tmp_path)
    with _waiting([*web, "--no-browser"], tmp_path) as serving:
        assert serving.stdout is not None
        told = ""
        while told.count("/enter?key=") < 3:
            line = serving.stdout.readline()
            assert line, told
            told += line
        links = re.findall(r"http://127\.0\.0\.1:(\d+)(/enter\?key=\S+)", told)
        raters = [Player.enter("rater", int(port), path) for port, path in links if "." in path]
        assert len(raters) == 2
        for rater in raters:
            for _ in range(12):
                page = rater.browser.get("/vote")
                hidden = dict(
                    re.findall(r'type="hidden" name="(token|form|unit|since)" value="([^"]*)"', page)
                )
                if "unit" not in hidden:
                    break
                rater.browser.post("/vote", hidden | {"choice": "first"})
    for command in rest:
        _run(command, tmp_path)
    assert [*(tmp_path / "rated").rglob("*.json*")]

"""Helpers for commands about files that people answer: the started command, with a person who answers."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests import fork_server
from tests.web.players import Browser, Player
from tests.web.serving import serving

JOB = "name: by_hand\nconversations: 1\nspace: education_dialogue\nprompt: education_dialogue\nbackends:\n  default: {type: human}\n"


@contextlib.contextmanager
def asking(folder: Path, out: Path, *command: object) -> Iterator[tuple[Player, list[str]]]:
    """Run `edgen COMMAND --backend JOB`, which writes `out`.

    Yield a person whom it asks, and the lines of its output, complete at the end.
    """
    (folder / "job.yaml").write_text(JOB, "utf-8")
    words = map(str, (*command, "--backend", folder / "job.yaml"))
    making = fork_server.Popen(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said: list[str] = []
    try:
        desk = out.with_name(f"{out.name}.people")
        while not (desk / "people" / "waiting.db").exists():
            assert making.poll() is None, making.communicate()
            time.sleep(0.1)
        with serving(desk, folder=folder) as link:
            ann = _invited(link, "ann")
            assert ann.until("answer") == "answer"
            yield ann, said
        assert making.wait(180) == 0, making.communicate()
    finally:
        making.terminate()
        said += making.communicate(timeout=180)


def _invited(link: str, name: str) -> Player:
    """Invite a person as the owner does, from the page of all runs; return the person."""
    port = int(link.partition("/enter")[0].rpartition(":")[2])
    owner = Browser(port)
    owner.get(link[link.index("/enter") :])
    address = re.findall(r'href="(/people/\w+)"', owner.get("/"))[0]
    end = time.monotonic() + 180
    while "play default" not in (page := owner.get(address)):
        assert time.monotonic() < end, page
        time.sleep(0.2)
    token = re.findall(r'name="token" value="(\w+)"', page)[0]
    page = owner.post(f"{address}/invite", {"token": token, "names": name, "task": "play default"})
    key = re.findall(r"(/enter\?key=[^<]+)</code>", page)[0]
    assert owner.get(address.replace("people", "run")) == owner.get(address)  # its list leads to the page
    return Player.enter(name, port, key)


def text_field(page: str) -> str:
    """Return the name of the form's multi-line field."""
    return re.findall(r'<textarea id="[^"]*" name="([^"]*)"', page)[0]

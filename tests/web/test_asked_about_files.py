"""People answer what is asked about a file and no run: new values of a space, and rankings of candidates."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest

from edgen.space import load_space
from tests import ROOT, fork_server
from tests.domains.retrieval.test_reading import UBUNTU, example
from tests.web.players import Browser, Player
from tests.web.serving import serving

pytestmark = pytest.mark.integration

JOB = "name: by_hand\nconversations: 1\nspace: education_dialogue\nprompt: education_dialogue\nbackends:\n  default: {type: human}\n"


def _begin(*command: object) -> subprocess.Popen[str]:
    return fork_server.popen(*map(str, command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _invited(link: str, name: str) -> Player:
    """Invite a person as the owner does, from the page of all runs; return the person, who came."""
    port = int(link.partition("/enter")[0].rpartition(":")[2])
    owner = Browser(port)
    owner.get(link[link.index("/enter") :])
    address = re.findall(r'href="(/people/\w+)"', owner.get("/"))[0]
    end = time.monotonic() + 60
    while "play default" not in (page := owner.get(address)):
        assert time.monotonic() < end, page
        time.sleep(0.2)
    token = re.findall(r'name="token" value="(\w+)"', page)[0]
    page = owner.post(f"{address}/invite", {"token": token, "names": name, "task": "play default"})
    key = re.findall(r"(/enter\?key=[^<]+)</code>", page)[0]
    assert owner.get(address.replace("people", "run")) == owner.get(address)  # its list leads there
    return Player.enter(name, port, key)


def test_people_write_new_values_of_a_space(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB, "utf-8")
    out = tmp_path / "more.yaml"
    command = ("space", "expand", "education_dialogue", "--dimension", "topic", "--count", 2)
    making = _begin(*command, "--backend", tmp_path / "job.yaml", "-o", out)
    try:
        desk = tmp_path / "more.yaml.people"
        while not (desk / "people" / "waiting.db").exists():
            assert making.poll() is None, making.communicate()
            time.sleep(0.1)
        with serving(desk, folder=tmp_path) as link:
            ann = _invited(link, "ann")
            assert ann.until("answer") == "answer"
            ann.page = ann.browser.post(
                "/play/answer", [*ann.form().items(), (_field(ann.page), "The tides\nHow bread rises")]
            )
        assert making.wait(60) == 0, making.communicate()
    finally:
        making.terminate()
        said = making.communicate(timeout=60)
    assert f"edgen web {desk}" in said[1]
    added = {one.value for one in load_space(out)["topic"].entries} - {
        one.value for one in load_space(ROOT / "preference_space/education_dialogue.yaml")["topic"].entries
    }
    assert added == {"The tides", "How bread rises"}


def _field(page: str) -> str:
    return re.findall(r'<textarea id="[^"]*" name="([^"]*)"', page)[0]


def test_people_rank_candidates(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB, "utf-8")
    (tmp_path / "ubuntu_test_subtask_1.json").write_text(json.dumps([example(1, *UBUNTU)]), "utf-8")
    out = tmp_path / "ranks.json"
    command = ("baseline", tmp_path / "ubuntu_test_subtask_1.json", "-o", out, "--method", "model")
    making = _begin(*command, "--backend", tmp_path / "job.yaml")
    try:
        desk = tmp_path / "ranks.json.people"
        while not (desk / "people" / "waiting.db").exists():
            assert making.poll() is None, making.communicate()
            time.sleep(0.1)
        with serving(desk, folder=tmp_path) as link:
            ann = _invited(link, "ann")
            assert ann.until("answer") == "answer"
            field = _field(ann.page)
            count = len(example(1, *UBUNTU)["options-for-next"])
            order = [*range(count, 0, -1)]
            ann.browser.post("/play/answer", [*ann.form().items(), (field, "\n".join(map(str, order)))])
        assert making.wait(60) == 0, making.communicate()
    finally:
        making.terminate()
        making.communicate(timeout=60)
    assert out.exists()
    names = [one["candidate-id"] for one in example(1, *UBUNTU)["options-for-next"]]
    (ranked,) = json.loads(out.read_text("utf-8"))
    ids = [one["candidate-id"] for one in ranked["candidate-ranking"]]
    assert ids == names[::-1]

"""Helpers for commands about files that people answer: the job that asks people, the command begun, a person invited."""

from __future__ import annotations

import re
import subprocess
import time

from tests import fork_server
from tests.web.players import Browser, Player

JOB = "name: by_hand\nconversations: 1\nspace: education_dialogue\nprompt: education_dialogue\nbackends:\n  default: {type: human}\n"


def begin(*command: object) -> subprocess.Popen[str]:
    """Start `edgen COMMAND`."""
    return fork_server.popen(*map(str, command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def invited(link: str, name: str) -> Player:
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


def text_field(page: str) -> str:
    """Return the name of the form's field of several lines."""
    return re.findall(r'<textarea id="[^"]*" name="([^"]*)"', page)[0]

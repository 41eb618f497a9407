"""People who play in a run: a server, invitations, pages and forms; all in real processes."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests import ROOT, fork_server
from tests.web.serving import start_pages

SELFPLAY = ROOT / "jobs" / "selfplay.yaml"
_STATES = {
    "answer": 'id="answer"',
    "wait": "your turn again soon",
    "over": "The conversation is over",
    "lobby": "The lobby",
    "paper": 'id="paper"',
}


def generate(job: Path, run: Path, *settings: str, people: Sequence[str] = ("student",)) -> fork_server.Popen:
    """Start to generate a job in which people play roles."""
    given = [f"backends.{role}={{type: human}}" for role in people]
    options = [part for setting in (*given, *settings) for part in ("--set", setting)]
    command = ("generate", str(job), "-o", str(run), *options)
    return fork_server.Popen(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for_mailbox(run: Path) -> None:
    """Wait until a run asks people."""
    end = time.monotonic() + 120
    while not (run / "people" / "waiting.db").exists():
        assert time.monotonic() < end
        time.sleep(0.1)


class Pages:
    """A server of `edgen web` for a run; `link` is its owner's."""

    def __init__(self, run: Path, port: int = 0) -> None:
        self.run = run
        self.process, told = start_pages(run, "--port", str(port), folder=run.parent)
        self.link = told["url"]
        self.port = urlsplit(self.link).port or 0

    def __enter__(self) -> Pages:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self, number: int = signal.SIGINT) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(180)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def again(self) -> Pages:
        """Kill the server, and start another one at the same port."""
        self.end(signal.SIGKILL)
        return Pages(self.run, self.port)

    def invite(self, role: str, *names: str) -> dict[str, str]:
        """Invite people as the owner does; return the path of each one's link."""
        owner, path = self._owner()
        page = owner.get(path)
        end = time.monotonic() + 180
        while f"play {role}" not in page and time.monotonic() < end:  # no request waits for the role yet
            time.sleep(0.2)
            page = owner.get(path)
        text = owner.post(
            f"{path}/invite",
            {"token": token_in(page), "names": ",".join(names), "task": f"play {role}"},
        )
        links = re.findall(r"<dt>([^<]+)</dt><dd><code>[^<]*?(/enter\?key=[^<]+)</code>", text)
        assert len(links) == len(names), text
        return {unescape(name): unescape(link) for name, link in links}

    def answers(self) -> list[dict[str, Any]]:
        """Return the people's answers that the owner downloads."""
        owner, path = self._owner()
        assert f"{path}/answers.jsonl" in owner.get(path)
        return [json.loads(line) for line in owner.get(f"{path}/answers.jsonl").splitlines()]

    def figures(self) -> list[list[str]]:
        """Return the cells of each row of figures on the owner's page of people."""
        owner, path = self._owner()
        rows = re.findall(r"<tr>(<td>.*?)</tr>", owner.get(path).partition('id="figures"')[2], re.S)
        return [re.findall(r"<td>([^<]*)</td>", row) for row in rows]

    def _owner(self) -> tuple[Browser, str]:
        """Return the owner's browser, and the path of the page of people."""
        owner = Browser(self.port)
        owner.get(urlsplit(self.link).path + "?" + urlsplit(self.link).query)
        return owner, "/people/" + re.findall(r'href="/run/(\w+)"', owner.get("/"))[0]


def token_in(page: str) -> str:
    found = re.search(r'name="token" value="(\w+)"', page)
    assert found is not None, page
    return found.group(1)


@dataclass
class Browser:
    """A browser without scripts.

    `times` are seconds from request to answer.
    """

    port: int
    cookie: str = ""
    times: list[float] = field(default_factory=list)

    def get(self, path: str) -> str:
        return self._send("GET", path, None)

    def post(self, path: str, fields: dict[str, str] | list[tuple[str, str]]) -> str:
        """Send a form, and return the page that it leads to."""
        return self._send("POST", path, urlencode(fields))

    def _send(self, method: str, path: str, body: str | None) -> str:
        headers = {"Cookie": self.cookie} if self.cookie else {}
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        began = time.perf_counter()
        talk = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            talk.request(method, path, body, headers)
            answer = talk.getresponse()
            text = answer.read().decode()
        finally:
            talk.close()
        self.times.append(time.perf_counter() - began)
        if given := answer.getheader("Set-Cookie"):
            self.cookie = given.split(";")[0]
        if answer.status == 303:
            return self.get(answer.getheader("Location") or "/")
        assert answer.status < 500, text
        return text


@dataclass
class Player:
    """A person with a link, who plays a role."""

    name: str
    browser: Browser
    page: str = ""
    sent: list[str] = field(default_factory=list)

    @classmethod
    def enter(cls, name: str, port: int, link: str) -> Player:
        player = cls(name, Browser(port))
        player.browser.get(link)
        return player

    def look(self) -> str:
        """Load the page; return the person's state."""
        self.page = self.browser.get("/play")
        return self.state

    @property
    def state(self) -> str:
        found = next((state for state, sign in _STATES.items() if sign in self.page), None)
        assert found is not None, f"{self.name} sees an unknown page: {self.page}"
        return found

    def until(self, *states: str, seconds: float = 120.0) -> str:
        """Load the page until the person is in one of these states."""
        end = time.monotonic() + seconds
        while (state := self.look()) not in states:
            assert time.monotonic() < end, f"{self.name} stays in {state}: {self.page}"
            time.sleep(0.1)
        return state

    @property
    def turns(self) -> list[str]:
        return [
            unescape(text)
            for text in re.findall(r'<div class="text" dir="auto">(.*?)</div></li>', self.page, re.S)
        ]

    def form(self) -> dict[str, str]:
        """Return the hidden fields of the page's form."""
        return dict(re.findall(r'<input type="hidden" name="(token|key)" value="([^"]*)"', self.page))

    def send_paper(self, fields: dict[str, str]) -> None:
        """Agree, or answer a questionnaire."""
        hidden = dict(re.findall(r'<input type="hidden" name="(token|paper)" value="([^"]*)"', self.page))
        self.page = self.browser.post("/play/paper", hidden | fields)

    def say(self, text: str, *, close: bool = False) -> str:
        """Send a text, or choose the first of the offered values."""
        fields = [*self.form().items()]
        for name in dict.fromkeys(re.findall(r'<textarea id="[^"]*" name="([^"]*)"', self.page)):
            fields.append((name, text))
            self.sent.append(text)
        chosen: dict[str, str] = {}
        for name, value in re.findall(
            r'<input type="(?:radio|checkbox)" name="([^"]*)" value="([^"]*)"', self.page
        ):
            chosen.setdefault(name, unescape(value))
        fields += chosen.items()
        if close:
            fields.append(("close", "1"))
        self.page = self.browser.post("/play/answer", fields)
        return self.state

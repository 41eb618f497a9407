"""The pages of `edgen web`: a real server, requested as by a browser."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import pytest

import edgen
from edgen.core.values import Request
from edgen.store.conversation_index import ConversationIndex, IndexEntry, Query
from edgen.store.conversation_index.writer import Indexed, write_index
from tests import ROOT
from tests.cli.command import call
from tests.web.serving import start_pages

pytestmark = pytest.mark.integration

HOSTILE = "<script>alert(1)</script>\u202egnp.exe\x1b[31m"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str


class Site(NamedTuple):
    """A server, and the state of its owner's browser."""

    port: int
    key: str
    cookie: str
    folder: Path

    def get(self, path: str, *, cookie: str | None = None, method: str = "GET", **headers: str) -> Answer:
        held = {"Cookie": self.cookie if cookie is None else cookie, **headers}
        talk = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        talk.request(
            method, path, headers={key.replace("_", "-"): value for key, value in held.items() if value}
        )
        answer = talk.getresponse()
        text = answer.read().decode("utf-8", "replace")
        talk.close()
        return Answer(answer.status, {key.lower(): value for key, value in answer.getheaders()}, text)

    def post(self, path: str, body: str, *, cookie: str, **headers: str) -> Answer:
        held = {"Cookie": cookie, "Content_Type": "application/x-www-form-urlencoded", **headers}
        talk = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        named = {key.replace("_", "-"): value for key, value in held.items() if value}
        talk.request("POST", path, body.encode(), named)
        answer = talk.getresponse()
        text = answer.read().decode("utf-8", "replace")
        talk.close()
        return Answer(answer.status, {key.lower(): value for key, value in answer.getheaders()}, text)

    def ready(self, path: str) -> Answer:
        """Return a page once its index is built."""
        for _ in range(1800):
            found = self.get(path)
            if found.status != 202:
                return found
            time.sleep(0.1)
        raise AssertionError("the index was not built")

    def runs(self) -> dict[str, str]:
        """Return the address of each run's list, by the run's name."""
        return {
            name: path for path, name in re.findall(r'<a href="(/run/\w+)">([^<]+)</a>', self.get("/").text)
        }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("web")
    outputs = folder / "outputs"
    experiment = ROOT / "jobs" / "experiment.yaml"
    assert call("generate", experiment, "-n", "6", "-o", outputs / "experiment") in (0, 3)
    job = {
        "name": "hostile",
        "conversations": 8,
        "space": "education_dialogue",
        "prompt": "education_dialogue",
    }
    edgen.generate(job, backends={"default": _answer}, output=outputs / "hostile", progress=False)
    server, told = start_pages(outputs, folder=folder)
    with server:
        link = urlsplit(told["url"])
        site = Site(link.port or 0, link.query.removeprefix("key="), "", folder)
        entered = site.get(f"/enter?key={site.key}")
        assert entered.status == 200
        assert "HttpOnly" in entered.headers["set-cookie"]
        assert "SameSite=Strict" in entered.headers["set-cookie"]
        yield site._replace(cookie=entered.headers["set-cookie"].split(";")[0])
        server.send_signal(signal.SIGINT)
        assert server.wait(180) == 0


async def _answer(_request: Request) -> str:
    """Answer as a hostile model may."""
    said = f'Teacher: "Hello {HOSTILE}",\nStudent: "So be it {HOSTILE}, and more.",\n'
    return f'[{said}Teacher: "Good.",\nStudent: "Goodbye [end of conversation]"]\nProbability: 0.5'


PLACES = (
    "/",
    "/events",
    "/run/x",
    "/run/x/y",
    "/nothing",
    "/run/../etc",
)


def test_nobody_without_the_cookie_sees_anything(site: Site) -> None:
    places = (*PLACES, *site.runs().values(), *(f"{path}/0" for path in site.runs().values()))
    for path in places:
        for cookie in ("edgen_web=", "edgen_web=guess", "other=1"):
            refused = site.get(path, cookie=cookie)
            assert (refused.status, "experiment" in refused.text) == (403, False), path
    for key in ("", "guess", "%ff", "\u00e9"):
        assert site.get(f"/enter?key={quote(key, safe='%')}", cookie="x=1").status == 403


def test_a_name_that_somebody_else_owns_is_refused(site: Site) -> None:
    refused = site.get("/", Host="evil.example")
    assert refused.status == 403
    assert "start it with --host NAME." in refused.text
    assert site.get("/", Origin="https://evil.example").status == 403
    assert site.get("/", Host=f"localhost:{site.port}").status == 200


def test_nothing_is_changed_and_nothing_is_fetched_from_elsewhere(site: Site) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert site.get("/", method=method).status == 405
    for path in ("/", *site.runs().values()):
        page = site.ready(path)
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "unsafe" not in page.headers["content-security-policy"]
        assert not re.findall(r"(?:src|href|action)=\"(?:https?:)?//", page.text)
        assert not re.findall(r"<script(?! type=\"module\" src)|\son\w+=|\sstyle=", page.text)


def test_files_are_served_by_name_alone(site: Site) -> None:
    for name in ("style.css", "live.js"):
        assert site.get(f"/static/{name}").status == 200
    for name in ("..%2f..%2fserver.py", "%2e%2e/server.py", "server.py", "../../pyproject.toml"):
        assert site.get(f"/static/{name}").status == 404


def test_runs_and_how_they_stand(site: Site) -> None:
    page = site.get("/")
    assert set(site.runs()) == {"experiment", "hostile"}
    assert re.search(r"Rejected: <span[^>]*>refused", page.text)
    talk = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    talk.request("GET", "/events", headers={"Cookie": site.cookie})
    answer = talk.getresponse()
    runs = json.loads(answer.readline().decode().removeprefix("data: "))["runs"]
    talk.close()
    assert {run["name"]: run["planned"] for run in runs} == {"experiment": 18, "hostile": 8}


def test_a_run_is_listed_before_its_partitions_are_merged(site: Site) -> None:
    parts = site.folder / "outputs" / "divided.partitions"
    try:
        assert call("generate", ROOT / "jobs" / "quickstart.yaml", "-n", "3", "-o", parts / "0") == 0
        (card,) = re.findall(
            r'<article [^>]*data-run="(?:(?!</article>).)*divided.*?</article>', site.get("/").text, re.S
        )
        assert "3</span> of" in card
        assert "Its partitions are not merged yet." in card
        assert "<form" not in card  # it is no folder that could be stopped or resumed
        assert "divided" not in site.runs()
        (slug,) = re.findall(r'data-run="(\w+)"', card)
        opened = site.ready(f"/run/{slug}")
        assert (opened.status, "cannot be" in opened.text) == (409, True)
    finally:
        shutil.rmtree(parts)


def test_search_facets_order_and_pages_agree(site: Site) -> None:
    path = site.runs()["experiment"]
    whole = site.ready(path).text
    assert "18 conversations" in whole
    json_arm = site.ready(f"{path}?is=arm:json").text
    assert "6 conversations" in json_arm
    assert "6 conversations" in site.ready(f"{path}?is=arm:json&is=outcome:accepted").text
    assert "12 conversations" in site.ready(f"{path}?is=arm:json&is=arm:published").text
    ids = re.findall(r"/run/\w+/([^\"?]+)\"", json_arm)
    assert len(ids) == 6
    after_the_last = site.ready(f"{path}?is=arm:json&page=99").text
    assert re.findall(r"/run/\w+/([^\"?]+)\"", after_the_last) == ids
    assert "Earlier" not in after_the_last
    assert "No conversation fits all of these." in site.ready(f"{path}?least.nothing=3").text
    one = unescape(site.get(f"{path}/{ids[0]}").text)
    words = re.findall(r'<div class="text" dir="auto">([^<]+)</div>', one)
    assert words
    found = site.ready(f"{path}?q={quote(words[0])}").text
    assert ids[0] in found
    for odd in ('"', "NEAR(", "a OR", "*", "-", "'; DROP TABLE entries; --", "%00", "\u202e"):
        assert site.ready(f"{path}?q={quote(odd)}").status == 200
    for odd in (
        "page=-1",
        "least.turns=x",
        "least.turns=nan&most.turns=1e999",
        "least.nothing=3",
        "page=99999999999",
        "page=x",
        "order=nothing",
        "is=nothing",
        "is=:",
        "is=arm:none",
    ):
        assert site.ready(f"{path}?{odd}").status == 200


def test_markup_and_hidden_characters_are_text(site: Site) -> None:
    path = site.runs()["hostile"]
    listed = site.ready(path).text
    assert "8 conversations" in listed
    assert "&lt;script&gt;" in listed
    ids = re.findall(r"/run/\w+/([^\"?]+)\"", listed)
    for page in (listed, *(site.get(f"{path}/{name}").text for name in ids)):
        assert "<script>alert" not in page
        assert "\u202e" not in page
        assert "\x1b" not in page


def test_a_conversation_shows_what_the_run_knows(site: Site) -> None:
    path = site.runs()["experiment"]
    listed = site.ready(f"{path}?is=outcome:rejected").text
    (refused, *_) = re.findall(r"/run/\w+/([^\"?]+)\"", listed)
    page = unescape(site.get(f"{path}/{refused}").text)
    assert "the model declined" in page
    assert "Raw replies" in page
    together = site.get(f"{path}/0").text
    assert together.count('<section aria-label="experiment.') == 3
    assert site.get(f"{path}/nothing-here").status == 404
    assert site.get("/run/0123456789ab").status == 404


def test_a_damaged_and_a_removed_run_are_a_sentence(site: Site) -> None:
    place = site.folder / "outputs" / "damaged"
    assert call("generate", ROOT / "jobs" / "quickstart.yaml", "-n", "3", "-o", place) == 0
    path = site.runs()["damaged"]
    assert "3 conversations" in site.ready(path).text
    data = bytearray((place / "run.db").read_bytes())
    data[:4096] = bytes(4096)
    (place / "run.db").write_bytes(data)
    assert "Traceback" not in site.get("/").text
    answer = site.get(f"{path}/0")
    assert (answer.status, "cannot be read" in answer.text) == (409, True)
    for file in sorted(place.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    place.rmdir()
    assert "damaged" not in site.runs()
    assert site.get(f"{path}/0").status in (404, 409)


@pytest.mark.unit
def test_an_index_that_was_not_finished_is_built_anew(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    entries = [
        Indexed(
            entry=IndexEntry(id=f"x-{n}", title="t", preview="p", status="accepted", turns=n),
            text=f"word{n} common",
            facets={"even": [str(n % 2 == 0)], "tens": [str(n // 10)]},
            numbers={"turns": n, **({"odd": -n} if n % 2 else {})},
        )
        for n in range(5_000)
    ]
    begun = write_index(path, entries)
    next(begun)
    assert not ConversationIndex(path).is_finished()
    del begun
    assert list(write_index(path, entries))[-1] == 5_000
    index = ConversationIndex(path)
    assert index.is_finished()
    found = index.find(Query(words="COMMON word4999"), 0, 10)
    assert [one.id for one in found.entries] == ["x-4999"]
    page = index.find(Query(facets={"even": ("True",)}, order="-turns"), 1, 10)
    assert page.total == 2_500
    assert [one.turns for one in page.entries] == [*range(4978, 4958, -2)]
    assert page.facets["even"] == [("False", 2_500), ("True", 2_500)]
    assert dict(page.facets["tens"])["0"] == 5
    both = index.find(
        Query(facets={"even": ("True",), "tens": ("1", "2", "3")}, ranges={"turns": (12, 30)}), 0, 100
    )
    assert [one.turns for one in both.entries] == [*range(12, 31, 2)]
    assert (dict(both.facets["even"]), dict(both.facets["tens"])["2"]) == ({"True": 10, "False": 9}, 5)
    tail = index.find(Query(ranges={"turns": (4_990, None)}, order="odd"), 0, 10)
    assert [one.turns for one in tail.entries] == [4999, 4997, 4995, 4993, 4991, 4990, 4992, 4994, 4996, 4998]
    assert [one.turns for one in index.find(Query(order="odd"), 499, 10).entries] == [*range(4980, 5000, 2)]
    assert index.find_neighbours("x-0") == (None, "x-1")
    with sqlite3.connect(path) as book:
        assert book.execute("PRAGMA integrity_check").fetchone() == ("ok",)

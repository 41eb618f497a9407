"""Runs that are damaged, moved, removed or of another version while open: each page reports it."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from edgen.web.guard import Route
from edgen.web.options import PeopleOptions
from edgen.web.people.inviting import set_up
from edgen.web.people.owner_page import invite
from edgen.web.sources import IndexedRun
from tests.cli.command import call
from tests.dose import dose
from tests.web.test_voting import Person, Served, make_run, routes_of_the_application, serve

pytestmark = pytest.mark.integration

NAME = "rated-000000-r0"


def _version(number: int) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        with sqlite3.connect(run / "run.db") as book:
            book.execute(f"PRAGMA user_version = {number}")
        book.close()

    return change


def _overwrite(
    name: str, data: bytes = b"\x00nothing that anybody wrote\xff" * 500
) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        with (run / name).open("r+b") as file:  # the same file, which the server may have open
            file.write(data)

    return change


def _remove(name: str) -> Callable[[Path], None]:
    return lambda run: shutil.rmtree(run / name) if (run / name).is_dir() else (run / name).unlink()


def _cut(run: Path) -> None:
    os.truncate(run / "run.db", (run / "run.db").stat().st_size // 2)


def _replace_by_file(run: Path) -> None:
    shutil.rmtree(run)
    run.write_text("no folder")


_ALL: dict[str, Callable[[Path], None]] = {
    "newer": _version(99),
    "older": _version(1),
    "cut": _cut,
    "garbage": _overwrite("run.db"),
    "ledger_gone": _remove("run.db"),
    "job_gone": _remove("job.yaml"),
    "job_garbage": _overwrite("job.yaml"),
    "inputs_gone": _remove("inputs"),
    "pairs_garbage": _overwrite("pairs/pairs.jsonl"),
    "layers_garbage": _overwrite("layers/teacher_moves/labels.jsonl"),
    "people_garbage": _overwrite("people/people.db"),
    "people_gone": _remove("people"),
    "moved": lambda run: run.rename(run.parent.parent / "away") and None,
    "removed": shutil.rmtree,
    "a_file": _replace_by_file,
}
_FEW = ("newer", "garbage", "ledger_gone", "job_garbage", "people_garbage", "moved", "removed")
CHANGES = dose({name: _ALL[name] for name in _FEW}, _ALL)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run for each change, each with pairs, a layer and invited people."""
    folder = tmp_path_factory.mktemp("damage")
    run = make_run(folder / "run")
    assert call("pairs", run, "--signal", "probability") == 0
    assert (
        call("annotate", run, "--labels", "teacher_moves", "--set", "backends.annotator={type: simulator}")
        == 0
    )
    for name in CHANGES:
        shutil.copytree(run, folder / "outputs" / name)
    return folder / "outputs"


def _pages(run: Path) -> list[Route]:
    routes = [route for route in routes_of_the_application(run) if route.method == "GET"]
    return [route for route in routes if route.path not in ("/events", "/static/{name}", "/task")]


@pytest.mark.long
def test_every_page_of_a_run_that_changed_says_what_is_wrong(outputs: Path) -> None:
    keys: dict[str, dict[str, str]] = {}
    for name in CHANGES:
        run = outputs / name
        keys[name] = set_up([run], PeopleOptions(vote=True, invite="voter"))
        keys[name] |= set_up([run], PeopleOptions(label="teacher_moves", invite="labeller"))
        keys[name] |= invite(IndexedRun(run), ["player"], "play student", time.time())
    pages = _pages(outputs / "newer")
    assert len(pages) >= 10
    with serve(outputs) as served:
        slugs = {name: IndexedRun(outputs / name).slug for name in CHANGES}
        people = {
            name: {who: served._replace(keys=keys[name]).enter(who) for who in keys[name]} for name in CHANGES
        }
        for name, slug in slugs.items():  # everything is open, and shown
            end = time.monotonic() + 180
            while served.site.get(f"/run/{slug}").status == 202:
                assert time.monotonic() < end
                time.sleep(0.1)
            for route in pages:
                status = _ask(served, people[name], route, slug)[0]
                assert status in (200, 303), (name, route.path)
        events = _Events(served)
        assert {
            name: run["state"] for name, run in events.until(lambda runs: len(runs) == len(CHANGES)).items()
        } == dict.fromkeys(CHANGES, "complete")
        for name, change in CHANGES.items():
            change(outputs / name)
        time.sleep(2.5)  # a page's knowledge of a run is at most this old
        gone = {"moved", "removed", "a_file"} & {*CHANGES}
        runs = events.until(lambda runs: not gone & {*runs} and runs["newer"]["problem"])
        assert {*runs} >= {*CHANGES} - gone - {"ledger_gone"}
        unreadable = {name for name, run in runs.items() if run["state"] == "unreadable"}
        assert {"newer", "older", "garbage"} & {*CHANGES} <= unreadable
        home = unescape(served.site.get("/").text)
        for name in unreadable:  # the list has a note with the run's own problem
            assert runs[name]["problem"]
            assert f'<p class="note">{runs[name]["problem"]}</p>' in home
        for name in gone:
            assert f'data-run="{slugs[name]}"' not in home
        for name in CHANGES:
            for path in ("/play", "/play/state"):
                answer = people[name]["player"].get(path)
                assert answer.status in ({409, 403} if name in gone else {200, 403, 409}), (name, path)
                assert str(outputs) not in answer.text
                if name in ("moved", "removed"):
                    assert (answer.status, "cannot be read now" in answer.text) == (409, True), path
            form = {"token": "x", "key": "x", "f:text": "lost?"}
            assert people[name]["player"].post("/play/answer", form).status == 403
        assert events.until(lambda runs: True)  # and the stream continues
        told: dict[str, set[int]] = {}
        for name, slug in slugs.items():
            for _ in range(2):  # also after an earlier successful read
                for route in pages:
                    status, text = _ask(served, people[name], route, slug)
                    assert status in (200, 202, 303, 403, 404, 409), (name, route.path, status, text)
                    assert "Traceback" not in text
                    if status >= 400:
                        assert "<h1>" in text or status == 403, (name, route.path, text)
                        told.setdefault(name, set()).add(status)
                    if route.who == "person":
                        assert str(outputs) not in text, (name, route.path)
        gone |= {"newer", "older", "garbage", "ledger_gone"}
        assert gone & {*CHANGES} <= {*told}
        newer = served.site.get(f"/run/{slugs['newer']}/{NAME}").text
        assert re.search("newer|version", newer), newer
        assert served.site.get("/").status == 200
        assert served.server.poll() is None


class _Events:
    """The events about changes of runs that a page gets."""

    def __init__(self, served: Served) -> None:
        self._talk = http.client.HTTPConnection("127.0.0.1", served.site.port, timeout=60)
        self._talk.request("GET", "/events", headers={"Cookie": served.site.cookie})
        self._answer = self._talk.getresponse()
        self._last: dict[str, Any] = {}

    def until(self, holds: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Listen until the runs, by name, meet the condition; return them."""
        end = time.monotonic() + 180
        while True:
            line = self._answer.readline()
            assert line, "the stream ended"
            if line.startswith(b"data: "):
                self._last = {run["name"]: run for run in json.loads(line.removeprefix(b"data: "))["runs"]}
            if holds(self._last):
                return self._last
            assert time.monotonic() < end, self._last


def _ask(served: Served, people: dict[str, Person], route: Route, slug: str) -> tuple[int, str]:
    """Request a page of a run as the visitor that the page is for."""
    path = route.path.replace("{run}", slug).replace("{id}", NAME)
    if path == "/beside":
        path += f"?left={slug}:{NAME}&right={slug}&right_id=0"
    assert "{" not in path, f"{path}: say in this test what stands for the part in braces"
    if route.who == "owner":
        answer = served.site.get(path)
    else:
        face = path.strip("/").split("/")[0]
        answer = people[{"vote": "voter", "label": "labeller"}.get(face, "player")].get(path)
    return answer.status, answer.text

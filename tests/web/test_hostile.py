"""Requests that no page sends, to every route that changes something, by a valid visitor and token.

Each is answered by a page or a sentence; nothing fails inside, and no hostile text becomes markup.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from edgen.web.guard import Route
from edgen.web.options import PeopleOptions
from edgen.web.people.inviting import set_up
from edgen.web.people.owner_page import invite
from edgen.web.sources import IndexedRun
from tests.web.test_pages import Answer
from tests.web.test_voting import HOSTILE, Served, make_run, routes_of_the_application, serve

pytestmark = pytest.mark.integration

VALUES = [
    "",
    "x",
    "0" * 64,
    "-1",
    "9" * 400,
    "nan",
    "null",
    '{"a": [1]}',
    "../../../etc/passwd",
    "/dev/zero",
    "a\0b",
    "\x1b[31mred\x1b]0;title\x07",
    "\u202e\u2066right to left",
    "<script>alert(1)</script>",
    "'; DROP TABLE answers; --",
    "w" * 60_000,
    "ß" * 300,
]
RAW = ["%ED%A0%80", "%FF%FE", "%00", "%"]  # no UTF-8, or cut off
FIELDS = [
    "unit",
    "form",
    "since",
    "choice",
    "label",
    "skip",
    "reason",
    "key",
    "f:",
    "f:text",
    "f:choice",
    "close",
    "paper",
    "names",
    "task",
    "n",
    "run",
    "job",
    "settings",
    "trust",
    "agree",
    "name",
    "count",
    "digest",
    "sure",
    "consent",
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    run = make_run(tmp_path_factory.mktemp("hostile") / "outputs" / "rated")
    keys = set_up([run], PeopleOptions(vote=True, invite="voter"))
    keys |= set_up([run], PeopleOptions(label="teacher_moves", invite="labeller"))
    keys |= invite(IndexedRun(run), ["player"], "play student", time.time())
    with serve(run) as made:
        yield made._replace(keys=keys)


def _visitor_of(route: Route, served: Served) -> str:
    """Return the cookie of a visitor who may use a route."""
    if route.who == "owner":
        return served.site.cookie
    face = route.path.strip("/").split("/")[0]
    return served.enter({"vote": "voter", "label": "labeller"}.get(face, "player")).cookie


def _token(served: Served, cookie: str, path: str) -> str:
    page = served.site.get(path, cookie=cookie).text
    found = re.search(r'(?:name="token" value|data-token)="(\w{64})"', page)
    assert found is not None, page
    return found[1]


def _send(served: Served, path: str, body: str, cookie: str, **headers: str) -> Answer:
    while True:
        answer = served.site.post(path, body, cookie=cookie, **headers)
        if answer.status != 429:
            return answer
        time.sleep(0.3)


def _changes(served: Served) -> list[Route]:
    return [route for route in routes_of_the_application(served.run) if route.method == "POST"]


def test_hostile_forms_get_a_sentence(served: Served) -> None:
    slug = served.site.runs()["rated"].removeprefix("/run/")
    assert len(_changes(served)) > 10
    for route in _changes(served):
        if route.path.endswith("/revoke"):
            continue  # the number of an invitation is a small one, which would end the others' links
        cookie = _visitor_of(route, served)
        page = f"/people/{slug}" if route.who == "owner" else "/" + route.path.strip("/").split("/")[0]
        token = _token(served, cookie, page)
        path = route.path.replace("{run}", slug).replace("{number}", "1")
        bodies = [
            "&".join(f"{quote(name)}={quote(value, errors='surrogatepass')}" for name in FIELDS)
            for value in VALUES
            if len(value) * len(FIELDS) < 50_000
        ]
        bodies += [f"{quote(name)}={quote('w' * 60_000)}" for name in ("reason", "names", "f:text")]
        bodies += ["&".join(f"{quote(name)}={raw}" for name in FIELDS) for raw in RAW]
        bodies += ["&" * 60_000, "=" * 60_000, "&".join(f"a{n}=1" for n in range(9_000))]
        for body in bodies:
            answer = _send(served, path, f"token={token}&{body}", cookie)
            assert answer.status in (200, 303, 400, 404, 409, 413), (path, body[:200], answer.text[:500])
            assert "Traceback" not in answer.text
            assert "<script>alert" not in answer.text
            assert not re.search("[\x00\x1b\u202e\u2066]", answer.text), (path, body[:200])
        assert _send(served, path, f"token={token}&x={'w' * 2_000_000}", cookie).status == 413
    assert served.server.poll() is None


def test_changes_from_elsewhere_are_refused(served: Served) -> None:
    slug = served.site.runs()["rated"].removeprefix("/run/")
    for route in _changes(served):
        cookie = _visitor_of(route, served)
        page = f"/people/{slug}" if route.who == "owner" else "/" + route.path.strip("/").split("/")[0]
        token, path = _token(served, cookie, page), route.path.replace("{run}", slug).replace("{number}", "1")
        for headers in (
            {"Origin": "null"},
            {"Origin": "http://elsewhere.example"},
            {"Origin": f"https://127.0.0.1:{served.site.port}.elsewhere.example"},
            {"Host": "elsewhere.example"},
            {"Host": f"elsewhere.example:{served.site.port}"},
        ):
            answer = _send(served, path, f"token={token}", cookie, **headers)
            assert answer.status == 403, (path, headers)
        for bad in ("", "0" * 64, token[:-1], token + "0", "é" * 10):
            assert _send(served, path, f"token={quote(bad)}", cookie).status == 403, path
        assert _send(served, path, token, cookie, Content_Type="text/plain").status == 415
        assert _send(served, path, f"token={token}", "edgen_web=" + "x" * 4_000).status == 403


def test_a_link_opens_two_browsers_and_an_unknown_run_none(served: Served) -> None:
    one, two = served.enter("voter"), served.enter("voter")  # a link is one person's, on the phone too
    assert one.fields("/vote") is not None
    assert one.fields("/vote")["unit"] == two.fields("/vote")["unit"]  # type: ignore[index]
    for key in (
        "",
        "x",
        "a.b",
        "." * 50,
        "é",
        served.keys["voter"][:-1],
        "0" * 12 + served.keys["voter"][12:],
    ):
        assert served.site.get(f"/enter?key={quote(key)}", cookie="x=1").status == 403, key


def test_hostile_addresses_get_a_sentence(served: Served, tmp_path: Path) -> None:
    slug = served.site.runs()["rated"].removeprefix("/run/")
    for value in VALUES:
        if len(value) > 5_000:
            continue
        shown = quote(value, safe="")
        for path in (
            f"/run/{shown}", f"/run/{slug}/{shown}", f"/requests/{slug}/{shown}", f"/people/{shown}", f"/static/{shown}",
            f"/beside?a={shown}&b={shown}", f"/run/{slug}?q={shown}&order={shown}&page={shown}&{shown}={shown}", f"/{shown}",
        ):  # fmt: skip
            answer = served.site.get(path)
            assert answer.status in (200, 202, 301, 303, 400, 404, 414), (
                path,
                answer.status,
                answer.text[:300],
            )
            assert "<script>alert" not in answer.text
            assert HOSTILE not in answer.text


def test_other_kinds_of_bodies_get_a_sentence(served: Served) -> None:
    """JSON, files where texts are expected, repeated fields, and forms in no known encoding."""
    slug = served.site.runs()["rated"].removeprefix("/run/")
    names = [*FIELDS, "token"]
    part = '--b\r\nContent-Disposition: form-data; name="{0}"; filename="{0}.txt"\r\n\r\nsent as a file\r\n'
    file = "".join(part.format(name) for name in names) + "--b--\r\n"
    for route in _changes(served):
        cookie = _visitor_of(route, served)
        page = f"/people/{slug}" if route.who == "owner" else "/" + route.path.strip("/").split("/")[0]
        token, path = _token(served, cookie, page), route.path.replace("{run}", slug).replace("{number}", "1")
        for kind, body in (
            ("application/json", '{"unit": ["u-0"], "choice": {"a": 1}, "names": 7, "n": true, "key": null}'),
            ("application/json", "[" * 20_000),
            ("multipart/form-data; boundary=b", file),
            ("multipart/form-data; boundary=b", file[: len(file) // 2]),
            ("multipart/form-data", file),
            ("application/x-www-form-urlencoded; charset=utf-16", "unit=1"),
            ("application/x-www-form-urlencoded; charset=no-such", "unit=1"),
            ("application/x-www-form-urlencoded", "&".join(f"{name}=x&{name}=y" for name in FIELDS)),
        ):
            answer = _send(served, path, body, cookie, Content_Type=kind, X_Token=token)
            assert answer.status in (200, 303, 400, 404, 409, 415), (path, kind, answer.status, answer.text)
            assert "Traceback" not in answer.text
            assert answer.text == "" or "<h1>" in answer.text or answer.text.startswith("{"), (path, kind)
    assert served.server.poll() is None


def test_whoever_sends_a_large_body_that_is_refused_gets_the_answer(served: Served) -> None:
    body = "a=" + "x" * (20 << 20)
    assert served.site.post("/task", body, cookie="").status == 403
    assert served.site.post("/nothing", body, cookie=served.site.cookie).status == 405

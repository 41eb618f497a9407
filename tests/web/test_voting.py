"""People who vote and label: from an invitation to labels, with all possible mistakes on the way."""

from __future__ import annotations

import contextlib
import csv
import http.client
import itertools
import json
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest

import edgen
from edgen.core.values import Request
from edgen.preferences.vote_units import list_vote_pairs, make_key
from edgen.store.people import People, UnitAnswer
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader
from edgen.store.votes import read_filed_votes, read_stored_votes
from edgen.web import server
from edgen.web.guard import PageGuard, Route
from edgen.web.options import PeopleOptions
from edgen.web.people.inviting import set_up
from edgen.web.sources import Sources
from tests import fork_server
from tests.cli.command import call
from tests.web.serving import start_pages
from tests.web.test_pages import Answer, Site

pytestmark = pytest.mark.integration

HOSTILE = "<script>alert(1)</script>\u202e=cmd|' /C calc'!A0"
JOB = {
    "name": "rated",
    "conversations": 5,
    "replicates": 2,
    "space": "education_dialogue",
    "prompt": "education_dialogue",
}


def make_run(folder: Path, said: str = "") -> Path:
    """Make a run of 5 scenarios with two conversations each, whose texts contain `said`."""
    count = itertools.count()

    async def answer(_request: Request) -> str:
        number = next(count)
        lines = f'Teacher: "Hello {HOSTILE} {said}",\nStudent: "Reply {number} of {number * 7}, and more.",\n'
        end = f'Teacher: "Good {number}.",\nStudent: "Goodbye {"so " * (number % 3)}[end of conversation]"'
        return f"[{lines}{end}]\nProbability: 0.{number % 9 + 1}"

    edgen.generate(JOB, backends={"default": answer}, output=folder, progress=False)
    return folder


class Served(NamedTuple):
    """A server with invited people: their links' keys by name."""

    site: Site
    run: Path
    keys: dict[str, str]
    server: fork_server.Popen

    def enter(self, name: str) -> Person:
        entered = self.site.get(f"/enter?key={self.keys[name]}", cookie="x=1")
        assert entered.status == 200
        return Person(self.site, entered.headers["set-cookie"].split(";")[0])


class Person(NamedTuple):
    """An invited person's browser."""

    site: Site
    cookie: str

    def get(self, path: str) -> Answer:
        return self.site.get(path, cookie=self.cookie)

    def post(self, path: str, fields: dict[str, str], **headers: str) -> Answer:
        return self.site.post(path, urlencode(fields), cookie=self.cookie, **headers)

    def fields(self, path: str) -> dict[str, str] | None:
        """Return the hidden fields of the form on the person's page; None where nothing is left."""
        page = self.get(path)
        assert page.status == 200, page.text
        if 'name="unit"' not in page.text:
            return None
        return hidden(page.text)


def hidden(page: str) -> dict[str, str]:
    form = page[page.index('class="answers') :]
    found = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form.partition("</form>")[0])
    return {name: unescape(value) for name, value in found}


@contextlib.contextmanager
def serve(run: Path, *options: str) -> Iterator[Served]:
    """Serve a run with a task for people."""
    server, told = start_pages(run, *options, folder=run.parent)
    with server:
        link = urlsplit(told["url"])
        keys = {
            name: urlsplit(one).query.removeprefix("key=") for name, one in told.get("invited", {}).items()
        }
        site = Site(link.port or 0, link.query.removeprefix("key="), "", run.parent)
        owner = site.get(f"/enter?key={site.key}").headers["set-cookie"].split(";")[0]
        try:
            yield Served(site._replace(cookie=owner), run, keys, server)
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(180)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Run a server of two runs: people vote on both, and label one."""
    outputs = tmp_path_factory.mktemp("voting") / "outputs"
    run = make_run(outputs / "rated")
    other = make_run(outputs / "other", "elsewhere")
    keys = set_up([run], PeopleOptions(vote=True, invite="ann,ben,cy,dee,eve,gone", per_unit=2))
    keys |= set_up([run], PeopleOptions(label="teacher_moves", invite="lea,leo", per_unit=2))
    keys |= set_up([other], PeopleOptions(vote=True, invite="oda"))
    with serve(outputs) as served:
        yield served._replace(keys=keys, run=run)


def test_people_vote_blind_and_their_votes_become_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "rated")
    assert call("pairs", run, "--signal", "probability") == 0
    by_probability = RunFolder(run).pairs.read_bytes()
    guide = tmp_path / "guide.txt"
    guide.write_text("Prefer <b>clear</b> teaching.")
    with serve(
        run, "--vote", "--invite", "ann,ben,cy", "--per-unit", "2", "--guidelines", str(guide)
    ) as served:
        people = {name: served.enter(name) for name in served.keys}
        assert "0 answered, at most 5 left" in people["ann"].get("/vote").text
        shown: dict[str, list[str]] = {}
        for name, person in people.items():
            while (fields := person.fields("/vote")) is not None:
                page = person.get("/vote").text
                assert "rated-0000" not in page  # no id, and so no arm
                assert "<script>alert" not in page
                assert "&lt;b&gt;clear" in page
                assert re.search(r"(?<!\d)0\.5", page) is None  # a margin; a time may end in it
                shown.setdefault(name, []).append(fields["unit"])
                assert person.post("/vote", {**fields, "choice": "first"}).status == 303
        given = [unit for units in shown.values() for unit in units]
        assert {given.count(unit) for unit in given} == {2}
        assert len({*given}) == 5
        assert all(len({*units}) == len(units) for units in shown.values())
        assert len({tuple(units) for units in shown.values()}) > 1
        slug = served.site.runs()["rated"].removeprefix("/run/")
        figures = unescape(served.site.get(f"/people/{slug}").text)
        assert "<dt>Units answered</dt><dd>5 of 5</dd>" in figures
        assert "Krippendorff" in figures
        assert "Prefers the first side" in figures
        assert "100%" in figures
    sides = {one.shown["first"] for name in shown for one in _answers(run, name)}
    assert sides == {"a", "b"}
    capsys.readouterr()
    assert call("pairs", run, "--signal", "human", "--json") == 0
    made = capsys.readouterr()
    assert json.loads(made.out)["pairs"]["train"] + json.loads(made.out)["pairs"]["test"] >= 1
    assert "stay" in made.err
    assert RunFolder(run).pairs.read_bytes() == by_probability
    people_set = (run / "pairs" / "human" / "pairs.jsonl").read_text()
    assert len(json.loads(people_set.splitlines()[0])["signals"]["human"]["votes"]) == 2
    again = edgen.Run(run).pairs("human")
    assert again.name == "human"
    assert {pair.label.by for pair in again if pair.label is not None} == {"human"}
    assert {pair.label.by for pair in edgen.Run(run).pairs() if pair.label is not None} == {"probability"}
    assert call("pairs", run, "--compare", "human", "default", "--json") == 0
    assert json.loads(capsys.readouterr().out)["both"] >= 1
    assert call("export", run, "--to", "trl-conversation", "--pairs", "human", "-o", tmp_path / "out") == 0
    assert call("export", run, "--to", "trl-conversation", "--pairs", "other", "-o", tmp_path / "no") == 2
    assert call("validate", run) == 0


def _answers(run: Path, name: str) -> list[UnitAnswer]:
    with People(run) as kept:
        return kept.list_answers("vote", name)


def routes_of_the_application(run: Path) -> list[Route]:
    """Return every route that the server makes, with the visitors who may use it."""
    guard = PageGuard("127.0.0.1", Sources([run]))
    app = server.make_app(Sources([run]), guard)
    found = []
    for one in app.router.routes():
        assert one.resource is not None
        assert one.method in ("GET", "HEAD", "POST") or one.resource.canonical == "/{rest}"
        if one.method in ("GET", "POST"):
            found.append(Route(one.method, one.resource.canonical, one.handler, guard.who[one.handler]))
    return found


def test_every_route_answers_only_those_it_is_for(both: Served) -> None:
    slug = both.site.runs()["rated"].removeprefix("/run/")
    visitors = {
        "nobody": "edgen_web=guess",
        "voter": both.enter("ann").cookie,
        "labeller": both.enter("lea").cookie,
        "voter of another run": both.enter("oda").cookie,
        "owner": both.site.cookie,
    }
    routes = routes_of_the_application(both.run)
    assert len(routes) > 25
    for route in routes:
        path = route.path.replace("{run}", slug).replace("{id}", "rated-000000-r0")
        path = path.replace("{name}", "style.css").replace("{number}", "1")
        assert "{" not in path, f"{path}: say in this test what stands for the part in braces"
        if path == "/events":
            continue  # it has no end; refused below
        for name, cookie in visitors.items():
            ask = both.site.get if route.method == "GET" else both.site.post
            answer = ask(path, *(() if route.method == "GET" else ("x=1",)), cookie=cookie)
            kind = {"nobody": "nobody", "owner": "owner"}.get(name, "person")
            may = route.who in (kind, "anyone") or (route.who == "visitor" and kind != "nobody")
            own_face = kind != "person" or path.strip("/") not in ("vote", "label", "play")
            if route.method == "POST" or not may:
                assert answer.status == 403, (name, route)  # a change lacks the token
            elif own_face:
                assert answer.status in (200, 202, 303, 404), (name, route)  # 404: incomplete addresses
            if kind == "nobody":
                assert "rated" not in answer.text
    for name in ("nobody", "voter", "labeller"):
        assert both.site.get("/events", cookie=visitors[name]).status == 403
    assert both.site.get("/vote", cookie=visitors["labeller"]).status == 403
    assert both.site.get("/label", cookie=visitors["voter"]).status == 403
    elsewhere = both.site.get("/vote", cookie=visitors["voter of another run"]).text
    assert "elsewhere" in elsewhere
    assert "elsewhere" not in both.site.get("/vote", cookie=visitors["voter"]).text


def test_what_no_page_sends_is_refused_and_nothing_is_stored(both: Served) -> None:
    person, other = both.enter("ben"), both.enter("cy")
    fields, theirs = person.fields("/vote"), other.fields("/vote")
    assert fields is not None
    assert theirs is not None
    good = {**fields, "choice": "first"}
    wrong: list[dict[str, str]] = [
        {**good, "unit": "u-" + "0" * 20},
        {**good, "unit": "rated-000000-r0~rated-000000-r1~0123456789abcdef"},
        {**good, "choice": "a"},
        {**good, "choice": ""},
        {**good, "form": ""},
        {**good, "form": "x" * 1000},
        {**good, "form": "../../etc/passwd"},
        {**good, "skip": "1"},
        {**good, "skip": "1", "reason": "x" * 301},
        {key: value for key, value in good.items() if key != "unit"},
    ]
    if theirs["unit"] != fields["unit"]:
        wrong.append({**good, "unit": theirs["unit"]})
    for one in wrong:
        assert person.post("/vote", one).status == 400, one
    assert person.post("/vote", {**good, "token": "0" * 64}).status == 403
    assert person.post("/vote", {**good, "token": theirs["token"]}).status == 403
    assert person.post("/vote", {**good, "reason": "x" * 1_100_000}).status == 413
    assert person.post("/vote", good, Origin="http://elsewhere.example").status == 403
    upload = '--b\r\nContent-Disposition: form-data; name="choice"; filename="x"\r\n\r\nfirst\r\n--b--\r\n'
    answer = both.site.post(
        "/vote", upload, cookie=person.cookie, Content_Type="multipart/form-data; boundary=b",
        X_Token=fields["token"],
    )  # fmt: skip
    assert answer.status == 400
    for text in ("{}", "[1]", "null", "\x00"):
        sent = both.site.post(
            "/vote", text, cookie=person.cookie, Content_Type="application/json", X_Token=fields["token"]
        )
        assert sent.status == 400, text
    assert "Traceback" not in answer.text
    assert not _answers(both.run, "ben")
    assert person.post("/vote", {**good, "since": "nan"}).status == 303
    assert _answers(both.run, "ben")[0].seconds is None


def test_reload_two_tabs_double_submit_undo_and_skip(both: Served) -> None:
    person = both.enter("dee")
    one, two = person.fields("/vote"), person.fields("/vote")
    assert one is not None
    assert two is not None
    assert one["unit"] == two["unit"]  # a reload, or a second tab
    assert person.post("/vote", {**one, "choice": "first"}).status == 303
    again = person.post("/vote", {**one, "choice": "second"})
    assert again.headers["location"] == "/vote?again=1"
    assert "answered before" in person.get("/vote?again=1").text
    assert len(_answers(both.run, "dee")) == 1
    assert person.post("/vote", {**two, "choice": "tie"}).status == 303  # the later tab counts
    with People(both.run) as kept:
        assert [answer.value for answer in kept.read_latest_answers("vote", "dee").values()] == [
            {"choice": "tie"}
        ]
    undo = {"token": one["token"], "form": f"{one['form']}-undo"}
    for _ in range(2):  # sent twice, withdrawn once
        assert person.post("/vote/undo", undo).status == 303
    with People(both.run) as kept:
        assert not kept.read_latest_answers("vote", "dee")
    fresh = person.fields("/vote")
    assert fresh is not None
    assert fresh["unit"] == one["unit"]
    assert person.post("/vote", {**fresh, "skip": "1", "reason": "I know both"}).status == 303
    after = person.fields("/vote")
    assert after is not None
    assert after["unit"] != one["unit"]
    with People(both.run) as kept:
        assert [answer.value for answer in kept.read_latest_answers("vote", "dee").values()] == [
            {"skip": "I know both"}
        ]
        assert len(kept.list_assigned("vote", "dee")) == 1
    assert all(
        vote.rater != "dee" for votes in read_stored_votes(RunFolder(both.run)).values() for vote in votes
    )


def test_votes_are_taken_while_another_process_holds_the_run(both: Served) -> None:
    person = both.enter("eve")
    with RunFolder(both.run).lock_for_writing():
        fields = person.fields("/vote")
        assert fields is not None
        assert person.post("/vote", {**fields, "choice": "second"}).status == 303
    assert len(_answers(both.run, "eve")) == 1


def test_a_revoked_link_ends_at_once_and_answers_stay(both: Served) -> None:
    person = both.enter("gone")
    fields = person.fields("/vote")
    assert fields is not None
    assert person.post("/vote", {**fields, "choice": "first"}).status == 303
    with People(both.run) as kept:
        kept.revoke(next(one.n for one in kept.list_invitations() if one.person == "gone"), 0.0)
    assert person.get("/vote").status == 403
    assert person.post("/vote", {**fields, "choice": "second"}).status == 403
    assert both.site.get(f"/enter?key={both.keys['gone']}", cookie="x=1").status == 403
    assert len(_answers(both.run, "gone")) == 1


def test_labels_of_people_enter_the_layer_as_a_sheet_does(
    both: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    person = both.enter("lea")
    fields, page = person.fields("/label"), person.get("/label").text
    assert fields is not None
    assert "Probing" in page
    assert 'class="definition"' in page
    assert "<script>alert" not in page
    for labels in ([], [("label", "Nonsense")], [("label", "Focus"), ("label", "Probing"), ("label", "x")]):
        body = urlencode([*fields.items(), *labels])
        assert both.site.post("/label", body, cookie=person.cookie).status == 400, labels
    assert person.post("/label", {**fields, "label": "Probing"}).status == 303
    wrong = person.fields("/label")
    assert wrong is not None
    assert wrong["unit"] != fields["unit"]
    assert person.post("/label", {**wrong, "label": "Focus"}).status == 303
    assert (
        person.post("/label/undo", {"token": wrong["token"], "form": f"{wrong['form']}-undo"}).status == 303
    )
    database = both.run / "people" / "people.db"
    command = ("annotate", both.run, "--labels", "teacher_moves", "--people", database, "--json")
    capsys.readouterr()
    assert call(*command) == 0
    (line,) = (both.run / "layers" / "teacher_moves" / "labels.jsonl").read_text().splitlines()
    assert json.loads(line)["annotators"] == {"lea": ["Probing"]}
    assert call(*command) == 0  # again: nothing is taken twice
    kept = both.run / "layers" / "teacher_moves" / "annotators" / "lea.jsonl"
    assert len(kept.read_text().splitlines()) == 1


def test_checks_of_attention_come_in_between_and_are_no_votes(tmp_path: Path) -> None:
    run = make_run(tmp_path / "rated")
    known = tmp_path / "known.jsonl"
    pair = {"a": "rated-000000-r1", "b": "rated-000000-r0", "choice": "a", "rater": "expert"}
    known.write_text(json.dumps(pair) + "\n")
    keys = set_up([run], PeopleOptions(vote=True, invite="ann", known=known, check_every=2))
    with serve(run) as served:
        person = served._replace(keys=keys).enter("ann")
        units = []
        while (fields := person.fields("/vote")) is not None:
            units.append(fields["unit"])
            assert person.post("/vote", {**fields, "choice": "first"}).status == 303
        slug = served.site.runs()["rated"].removeprefix("/run/")
        assert "of 1" in served.site.get(f"/people/{slug}").text  # of the known answers
    assert len(units) == 5  # four pairs and one check
    with People(run) as kept:
        checks = [unit for unit, _ in kept.read_latest_answers("vote") if unit.endswith("#known")]
        assert [kept.read_settings("vote")["known"][unit.partition("#")[0]] for unit in checks] == ["b"]
    assert sum(map(len, read_stored_votes(RunFolder(run)).values())) == 4


def test_votes_on_other_texts_are_left_out_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "rated")
    with People(run) as kept:
        for number, unit in enumerate(("rated-000000-r0~rated-000000-r1~0123456789abcdef", "x~y", "")):
            kept.answer(
                "vote",
                unit,
                "ann",
                f"f{number}",
                {"choice": "a"},
                shown={"first": "a"},
                seconds=None,
                now=1.0,
            )
        kept.answer(
            "vote",
            "rated-000001-r0~rated-000001-r1~0123456789abcdef",
            "ann",
            "g",
            [1],
            shown=2,
            seconds=None,
            now=1.0,
        )
    capsys.readouterr()
    assert call("pairs", run, "--signal", "human") == 3
    assert "1 vote about texts or pairs that the run no longer has" in capsys.readouterr().err


def test_a_sheet_of_votes_goes_out_and_comes_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "rated")
    sheet = tmp_path / "rater.csv"
    assert call("pairs", run, "--sheet", sheet) == 0
    assert call("pairs", run, "--sheet", sheet) == 2  # it may be filled in
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5
    assert not any(cell[:1] in "=+-@\t\r" for row in rows for cell in row.values() if cell)
    assert "rated-0" not in sheet.read_text(encoding="utf-8-sig")
    for row, choice in zip(rows, ("1", "2", "tie", "", "1"), strict=True):
        row["choice"] = choice
    _write(sheet, rows)
    assert call("pairs", run, "--signal", "human", "--people", sheet) == 0
    votes = {pair: given[0] for pair, given in read_filed_votes(RunFolder(run)).items()}
    assert len(votes) == 4
    assert {vote.rater for vote in votes.values()} == {"rater"}
    with RunReader(run) as reader:
        for row in rows:
            if row["choice"] in ("1", "2"):
                (pair,) = [pair for pair in list_vote_pairs(reader) if pair.key == row["pair"]]
                vote = votes[pair.a, pair.b]
                chosen = reader.named(pair.a if vote.choice == "a" else pair.b)
                said = row["first"] if row["choice"] == "1" else row["second"]
                assert chosen.turns[1].text in said
    rows[0]["choice"] = "better"
    rows[1]["pair"] = "12345"
    _write(sheet, rows)
    assert call("pairs", run, "--signal", "human", "--people", sheet) == 2
    said_wrong = capsys.readouterr().err
    assert "line 2" in said_wrong or "line " in said_wrong
    assert "better" in said_wrong
    assert "12345" in said_wrong
    rows[0]["choice"], rows[1]["pair"], rows[2]["choice"] = "1", "u-" + "0" * 20, "Tie"
    _write(sheet, rows)
    sheet.write_text(sheet.read_text(encoding="utf-8-sig").replace("pair,before", "Pair,Before", 1))
    assert call("pairs", run, "--signal", "human", "--people", sheet) == 0
    assert "does not have now" in capsys.readouterr().err


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_other_addresses_need_invitations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "rated")
    for options in (
        ("--host", "0.0.0.0"),
        ("--invite", "ann"),
        ("--vote", "--label", "teacher_moves"),
        ("--vote", "--invite", "ann,ann"),
        ("--vote", "--invite", "an\u202en"),
        ("--label", "quality", "--unit", "turn", "--known", tmp_path / "none"),
        ("--vote", "--known", tmp_path / "none"),
        ("--vote", "--guidelines", tmp_path / "none"),
    ):
        capsys.readouterr()
        assert call("web", run, *options, "--no-browser") in (2, 4), options
        assert "Traceback" not in capsys.readouterr().err


def test_no_confirmed_vote_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "rated")
    names = [f"p{number}" for number in range(6)]
    keys = set_up([run], PeopleOptions(vote=True, invite=",".join(names), per_unit=6))
    confirmed: list[tuple[str, str]] = []
    for _ in range(2):
        with serve(run) as served, ThreadPoolExecutor(6) as pool:
            served = served._replace(keys=keys)
            done = [pool.submit(_vote_until_away, served, name, confirmed) for name in names]
            while sum(one.done() for one in done) == 0 and len(confirmed) < 8:
                time.sleep(0.01)
            served.server.kill()
    with serve(run) as served:
        for name in names:
            _vote_until_away(served._replace(keys=keys), name, confirmed)
    with People(run) as kept:
        given = [(one.person, one.unit) for one in kept.list_answers("vote")]
    assert len({*given}) == len(given) == 30
    assert {(person, make_key(unit)) for person, unit in given} >= {*confirmed}


def _vote_until_away(served: Served, name: str, confirmed: list[tuple[str, str]]) -> None:
    """Vote until the server is gone or nothing is left, noting each confirmed vote."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        person = served.enter(name)
        while (fields := person.fields("/vote")) is not None:
            if person.post("/vote", {**fields, "choice": "first"}).status == 303:
                confirmed.append((name, fields["unit"]))


def test_a_moved_run_a_rebuilt_pair_and_a_cookie_of_an_earlier_server(tmp_path: Path) -> None:
    run = make_run(tmp_path / "rated")
    keys = set_up([run], PeopleOptions(vote=True, invite="ann"))
    with serve(run) as served:
        person = served._replace(keys=keys).enter("ann")
        fields = person.fields("/vote")
        assert fields is not None
        owner = served.site.cookie
    with serve(run) as served:
        later = Person(served.site, person.cookie)
        same = later.fields("/vote")
        assert same is not None
        assert same["unit"] == fields["unit"]  # a reload, at another start
        assert served.site.get("/", cookie=owner).status == 403
        rebuilt = "rated-000000-r0~rated-000000-r1~0123456789abcdef"
        with People(run) as kept:
            kept.assign("vote", rebuilt, "ann", 1, 0.0)
        assert later.fields("/vote") is not None  # the rebuilt pair is passed over
        sent = {**same, "unit": make_key(rebuilt), "choice": "first"}
        assert later.post("/vote", sent).status == 303  # kept, and no vote on the present texts
        moved = run.rename(tmp_path / "away")
        for answer in (later.get("/vote"), later.post("/vote", {**same, "choice": "first"})):
            assert answer.status == 409
            assert str(tmp_path) not in answer.text
        moved.rename(run)
        assert later.post("/vote", {**same, "choice": "first"}).headers["location"] == "/vote?again=1"
        fresh = later.fields("/vote")
        assert fresh is not None
        assert later.post("/vote", {**fresh, "choice": "tie"}).status == 303
    assert len(_answers(run, "ann")) == 2


def test_pairs_made_of_the_first_votes_leave_the_others_to_vote_on(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with RunReader(run) as reader:
        offered = [*list_vote_pairs(reader)]
    assert len(offered) == 5
    for name, choice in (("one", "a"), ("two", "tie")):  # a label, and votes without any
        votes = tmp_path / f"{name}.jsonl"
        vote = {"a": offered[0].a, "b": offered[0].b, "choice": choice, "rater": name}
        votes.write_text(json.dumps(vote) + "\n")
        assert call("pairs", run, "--signal", "human", "--people", votes) in (0, 3)
        assert len((run / "pairs" / "pairs.jsonl").read_text().splitlines()) == 1
        with RunReader(run) as reader:
            assert [*list_vote_pairs(reader)] == offered
    assert call("pairs", run, "--signal", "probability", "--name", "default") == 0  # a choice of pairs
    with RunReader(run) as reader:
        assert [pair.key for pair in list_vote_pairs(reader)] == [pair.key for pair in offered]

"""People who vote on pairs between runs of the same scenarios: pages, sheets, files, exports."""

from __future__ import annotations

import csv
import json
import re
import shutil
from html import unescape
from pathlib import Path

import pytest

import edgen
from edgen.preferences.vote_units import list_vote_pairs
from edgen.store.run_folder import RunFolder
from edgen.store.several_runs import SeveralRuns, find_pairs_place
from edgen.store.votes import read_stored_votes
from tests.cli.command import call
from tests.dose import dose
from tests.web.test_voting import JOB, Person, serve

pytestmark = [pytest.mark.integration, pytest.mark.long]

NAMES = {"of one name": "rated", "of two names": "later"}


def _make(folder: Path, name: str, said: str) -> Path:
    async def answer(request: edgen.Request) -> str:
        topic = len(str(request)) % 97
        lines = f'Teacher: "Hello {said} {topic}",\nStudent: "I see {said}.",\nTeacher: "Good.",\n'
        return f'[{lines}Student: "Goodbye{" now" * len(said)} [end of conversation]"]\nProbability: 0.5'

    job = {**JOB, "name": name, "replicates": 1}
    edgen.generate(job, backends={"default": answer}, output=folder, progress=False)
    return folder


@pytest.fixture(scope="module", params=dose([*NAMES][:1], [*NAMES]))
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("between")
    _make(folder / "before", "rated", "early")
    _make(folder / "after", NAMES[request.param], "lately")
    return folder


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> tuple[Path, Path]:
    shutil.copytree(made, tmp_path / "outputs")
    return tmp_path / "outputs" / "before", tmp_path / "outputs" / "after"


def _vote(person: Person, word: str) -> int:
    """Choose the side that contains a word until nothing is left; return the number of answers."""
    given = 0
    while (fields := person.fields("/vote")) is not None:
        page = unescape(person.get("/vote").text)
        first = page[page.index("<h2>First</h2>") : page.index("<h2>Second</h2>")]
        choice = "first" if word in first else "second"
        assert person.post("/vote", {**fields, "choice": choice}).status == 303
        given += 1
    return given


def test_from_invitations_to_agreement_and_an_export(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = runs
    oracle = ("--signal", "oracle", "--set", "backends.judge={type: simulator}")
    assert call("pairs", before, after, *oracle) in (0, 3)
    judged = find_pairs_place(runs).pairs.read_bytes()
    with serve(
        before, str(after), "--vote", "--invite", "ann,bob", "--per-unit", "2", "--check-every", "0"
    ) as served:
        ann, bob = served.enter("ann"), served.enter("bob")
        page = ann.get("/vote").text
        for name in ("before", "after", "rated-", "later-", str(before.parent)):
            assert name not in page.partition("<main")[2]
        assert (_vote(ann, "lately"), _vote(bob, "early")) == (5, 5)
        slugs = served.site.runs()
        people = unescape(served.site.get(slugs["before"].replace("/run/", "/people/")).text)
        assert "vote before-vs-after" in people
        assert f"edgen pairs {before} {after} --signal human" in people
        assert re.search(r"Krippendorff's alpha</dt><dd>-", people)
        assert "before-vs-after" not in served.site.get(slugs["after"].replace("/run/", "/people/")).text
    assert not read_stored_votes(RunFolder(before))  # votes between runs are no votes on the run's own pairs
    assert sum(map(len, read_stored_votes(find_pairs_place(runs)).values())) == 10
    capsys.readouterr()
    assert call("pairs", before, after, "--signal", "human") == 3  # one against one: ties
    assert "are not people's and stay" in capsys.readouterr().err
    votes = before.parent / "third.jsonl"
    with SeveralRuns(runs) as reader:
        pairs = [*list_vote_pairs(reader)]
        assert all(
            reader.scenario_of(pair.a) == reader.scenario_of(pair.b) == pair.scenario for pair in pairs
        )
    votes.write_text(
        "".join(
            json.dumps({"a": one.b, "b": one.a, "choice": "a", "rater": "cy"}) + "\n" for one in pairs[:4]
        )
    )
    assert call("pairs", before, after, "--signal", "human", "--people", votes) == 0
    assert find_pairs_place(runs).pairs.read_bytes() == judged
    human = find_pairs_place(runs).pairs_folder / "human" / "pairs.jsonl"
    labels = [json.loads(line)["label"] for line in human.read_text().splitlines()]
    assert [one and (one["chosen"], one["by"]) for one in labels].count(("b", "human")) == 4
    capsys.readouterr()
    assert call("pairs", before, after, "--compare", "human", "default", "--json") == 0
    compared = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in compared["sets"]] == ["human", "default"]
    assert compared["sets"][0]["labelled"] == {"human": 4}
    out = before.parent / "dpo"
    options = ("--to", "trl-dpo", "--opening", "user", "--pairs", "human", "-o", out)
    assert call("export", before, "--against", after, *options) == 0
    rows = [json.loads(line) for path in out.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert len(rows) == 4
    assert all("lately" in json.dumps(row["chosen"]) for row in rows)
    assert [pair.label for pair in edgen.Run(before).pairs(against=after, name="human") if pair.label]
    assert call("show", before, pairs[0].a.rpartition("/")[2]) == 0
    assert "by human" in capsys.readouterr().out
    assert call("validate", before) == 0
    human.write_text("no pair\n")
    assert call("validate", before) == 3


def test_a_sheet_between_runs(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    before, after = runs
    sheet = before.parent / "dee.csv"
    assert call("pairs", before, after, "--sheet", sheet) == 0
    assert f"edgen pairs {before} {after} --signal human" in capsys.readouterr().out
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5
    for row in rows:
        row["choice"] = "1" if "early" in row["first"] else "2"
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert call("pairs", before, after, "--signal", "human", "--people", sheet, "--report") == 0
    labels = [json.loads(line)["label"] for line in find_pairs_place(runs).pairs.read_text().splitlines()]
    assert [(one["chosen"], one["by"]) for one in labels] == [("a", "human")] * 5
    assert not RunFolder(before).pairs.exists()
    assert call("pairs", before, "--sheet", before.parent / "own.csv") == 2  # one conversation a scenario
    assert call("pairs", before, after, "--signal", "flag") == 2
    assert "--signal oracle or human" in capsys.readouterr().err


def test_another_run_that_is_gone_or_not_shown(runs: tuple[Path, Path]) -> None:
    before, after = runs
    with serve(before, str(after), "--vote", "--invite", "ann", "--check-every", "0") as served:
        ann = served.enter("ann")
        fields = ann.fields("/vote")
        assert fields is not None
    keys = served.keys
    with serve(before) as alone:  # a file named in a run is opened only if the owner named it, too
        refused = alone._replace(keys=keys).enter("ann").get("/vote")
        assert refused.status == 409
        assert str(after) not in refused.text
    with serve(before, str(after)) as served:
        ann = served._replace(keys=keys).enter("ann")
        fields = ann.fields("/vote")
        assert fields is not None
        away = after.rename(after.with_name("away"))
        for _ in range(30):
            page = ann.get("/vote")
            assert page.status in (200, 409)
            assert str(before.parent) not in page.text
        posted = ann.post("/vote", {**fields, "choice": "tie"})  # data read before is still stored
        assert posted.status in (303, 409)
        away.rename(after)
        assert _vote(ann, "early") + (posted.status == 303) == 5
    assert sum(map(len, read_stored_votes(find_pairs_place(runs)).values())) == 5


def test_known_votes_between_runs_and_options_of_one_run(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = runs
    with SeveralRuns(runs) as reader:
        first = next(list_vote_pairs(reader))
    known = before.parent / "known.jsonl"
    known.write_text(json.dumps({"a": first.b, "b": first.a, "choice": "a", "rater": "gold"}))
    with serve(
        before,
        str(after),
        "--vote",
        "--invite",
        "ann",
        "--known",
        str(known),
        "--check-every",
        "2",
    ) as served:
        assert _vote(served.enter("ann"), "lately") >= 5
        path = served.site.runs()["before"].replace("/run/", "/people/")
        assert "<td>1 of 1</td>" in served.site.get(path).text
    for options in (("--label", "teacher_moves"), ("--vote", "--unit", "turn")):
        assert call("web", before, after, *options, "--invite", "ann", "--no-browser") == 2
    assert "about one run" in capsys.readouterr().err
    assert call("web", before, before, "--vote", "--invite", "ann", "--no-browser") == 2
    assert "named twice" in capsys.readouterr().err

"""People who vote on pairs of responses to one turn: pages, sheets and files, to labels and exports."""

from __future__ import annotations

import csv
import json
from html import unescape
from pathlib import Path

import pytest

import edgen
from edgen.preferences.vote_units import list_vote_pairs
from edgen.store.pairs_file import read_pairs
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader
from tests import ROOT
from tests.cli.command import call
from tests.web.test_voting import serve

pytestmark = pytest.mark.integration


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run of one conversation a scenario, with three responses of the tutor to each turn."""
    made = tmp_path / "sessions"
    edgen.generate(ROOT / "jobs" / "tutoring.yaml", conversations=3, output=made, progress=False)
    return made


def test_a_person_votes_on_responses_and_the_labels_are_exported(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunReader(run) as reader:
        offered = {pair.key: pair for pair in list_vote_pairs(reader)}
        assert all(pair.a == pair.b and pair.responses is not None for pair in offered.values())
        texts = {}
        for key, pair in offered.items():
            assert pair.responses is not None
            turn = reader.named(pair.a).turns[pair.responses[0].turn]
            said = (turn, *turn.alternatives)
            texts[key] = tuple(said[place.number].text for place in pair.responses)
    preferred: dict[str, str] = {}
    with serve(run, "--vote", "--invite", "ann") as served:
        ann = served.enter("ann")
        for _ in range(6):
            fields = ann.fields("/vote")
            assert fields is not None
            page = unescape(ann.get("/vote").text)
            assert "Which reply is better?" in page
            a, b = texts[fields["unit"]]
            better = max(a, b)
            first = page.index("<h2>First</h2>")
            choice = "first" if better in page[first : page.index("<h2>Second</h2>")] else "second"
            assert ann.post("/vote", {**fields, "choice": choice}).status == 303
            preferred[fields["unit"]] = better
    assert call("pairs", run, "--signal", "human") == 0
    pairs = {pair.texts: pair for pair in read_pairs(RunFolder(run))}
    assert len(pairs) == 6
    for key, better in preferred.items():
        pair = pairs[offered[key].texts]
        assert pair.origin == "responses"
        assert pair.label is not None
        assert texts[key]["ab".index(pair.label.chosen)] == better
    capsys.readouterr()
    out = run.parent / "dpo"
    assert call("export", run, "--to", "trl-dpo", "-o", out) == 0
    assert "given to whole conversations" not in capsys.readouterr().err
    assert "People compared single responses" in (out / "README.md").read_text()
    rows = [json.loads(line) for path in out.glob("*.jsonl") for line in path.read_text().splitlines()]
    assert {row["chosen"][0]["content"] for row in rows} <= {*preferred.values()}
    assert call("validate", run) == 0


def test_a_sheet_and_a_file_of_votes_on_responses(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = run.parent / "bob.csv"
    assert call("pairs", run, "--sheet", sheet) == 0
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["pair"] for row in rows}) == len(rows)  # equal responses are one pair
    longer = {row["pair"]: max(row["first"], row["second"], key=len) for row in rows[:8]}
    for row in rows[:8]:
        row["choice"] = "1" if row["first"] == longer[row["pair"]] else "2"
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert call("pairs", run, "--signal", "human", "--people", sheet) == 0
    with RunReader(run) as reader:
        compared = [*reader.compared()]
    assert len(compared) == 8
    for one in compared:
        assert one.pair.label is not None
        chosen, other = (one.a, one.b) if one.pair.label.chosen == "a" else (one.b, one.a)
        assert len(chosen.turns[-1].text) >= len(other.turns[-1].text)
    name, digest = compared[0].a.id, compared[0].pair.texts
    votes = run.parent / "votes.jsonl"
    line = {"a": name, "b": name, "choice": "tie", "rater": "bob"}
    votes.write_text(json.dumps(line))
    capsys.readouterr()
    assert call("pairs", run, "--signal", "human", "--people", votes) == 2
    assert "give `texts`" in capsys.readouterr().err
    votes.write_text(json.dumps({**line, "texts": digest}))
    assert call("pairs", run, "--signal", "human", "--people", votes, "--name", "later") == 0
    folder = RunFolder(run)
    folder.pairs = run / "pairs" / "later" / "pairs.jsonl"
    later = [*read_pairs(folder)]
    assert [pair.left_out for pair in later].count("tie") == 1  # bob's later vote, of that pair alone
    assert len(later) == 8

"""`edgen select --split-by`: a new split by any name, which every reader of the run uses."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest

import edgen
from edgen.core.errors import ShortError
from edgen.store.layers import UnitLabels, digest_text
from edgen.store.run_reader import RunReader
from tests.cli.command import Command

JOB: dict[str, Any] = {
    "name": "f", "seed": 5, "conversations": 24, "replicates": 2, "space": "homework_help", "protocol": "forum",
    "prompts": {"asker": "forum_asker", "tutor": "forum_agent", "classmate": "forum_agent", "newcomer": "forum_user"},
    "forum": {"turns": 4, "days": 20}, "backends": {"default": {"type": "simulator"}}, "top_up": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("split") / "run"
    edgen.generate(JOB, output=folder)
    return folder


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def sides(folder: Path, of: str) -> dict[str, set[Any]]:
    """Return the values on each side of one key of the outcome or scenario, or of the scenario number, from
    the shards."""
    found: dict[str, set[Any]] = {"train": set(), "test": set()}
    for path in (folder / "shards").glob("conversations_*.json"):
        for record in json.loads(path.read_text()):
            values = {**record["outcome"], **record["scenario"], "number": record["provenance"]["scenario"]}
            found["test" if "eval" in path.name else "train"].add(values[of])
    return found


def put_layer(run: edgen.Run, name: str, labels: dict[str, str]) -> None:
    """Write a layer that gives each conversation one label."""
    lines = [
        UnitLabels(
            id=one.id, turn=None, role=None, labels=(labels[one.id],), annotators={"me": (labels[one.id],)},
            tie=False, agreement=None, text_sha256=digest_text(one.turns, None),
        )
        for one in run.conversations()
    ]  # fmt: skip
    (folder := run.folder / "layers" / name).mkdir(parents=True)
    (folder / "labels.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(lines))


def by_reader(folder: Path) -> dict[str, str]:
    with RunReader(folder) as reader:
        return {one.candidate.id: one.split for one in reader.conversations()}


class TestByValue:
    def test_no_value_is_on_both_sides_for_any_reader(
        self, command: Command, run: Path, tmp_path: Path
    ) -> None:
        new = tmp_path / "new"
        ended = command("select", run, "--split-by", "outcome.category", "--test", ".3", "-o", new)
        assert ended.code == 0, ended.err
        found = sides(new, "category")
        assert found["test"]
        assert not found["train"] & found["test"]
        assert (
            sides(run, "category")["train"] & sides(run, "category")["test"]
        )  # the run's own split has a category on both sides
        by_file = {
            record["id"]: "test" if "eval" in path.name else "train"
            for path in (new / "shards").glob("conversations_*.json")
            for record in json.loads(path.read_text())
        }
        assert by_reader(new) == by_file
        tested = sum(side == "test" for side in by_file.values())
        assert f"test 0.3 by outcome.category: {tested} of {len(by_file)}" in ended.out
        counted = json.loads(command("stats", new, "--only", "overview", "--json").out)
        assert counted["overview"]["splits"] == {"train": len(by_file) - tested, "test": tested, "none": 0}
        assert command("export", new, "--to", "msdialog-complete", "-o", tmp_path / "out").code == 0
        assert len(json.loads((tmp_path / "out" / "test.json").read_text())) == tested
        card = (tmp_path / "out" / "README.md").read_text()
        assert "- selection.split: `test 0.3 by outcome.category`" in card
        assert "job.split" not in card
        assert "--split-by outcome.category --test 0.3 -o AGAIN" in card

    def test_a_dimension_gives_the_sides_that_a_job_gives(self, run: Path, tmp_path: Path) -> None:
        made = edgen.generate(JOB | {"split": {"by": "exercise", "test": 0.3}}, output=tmp_path / "made")
        for name in ("exercise", "scenario.exercise"):
            new = edgen.select(run, tmp_path / name, split_by=name, test=0.3)
            assert by_reader(new.folder) == by_reader(made.folder)

    def test_a_layer_splits_and_scenarios_stay_together(self, run: Path, tmp_path: Path) -> None:
        copy = edgen.select(run, tmp_path / "copy", "scenario.index < 30")
        names = sorted(one.id for one in copy.conversations())
        # In every fourth scenario the two conversations have different values, which links `k…` to `k…+1`.
        places = {name: (int(name[-9:-3]), int(name[-1])) for name in names}
        value = {name: f"k{(one + again * (one % 4 == 3)) // 4}" for name, (one, again) in places.items()}
        put_layer(copy, "kind", value)
        with pytest.raises(ShortError, match="are linked by it, or by their scenarios"):
            edgen.select(copy, tmp_path / "tied", split_by="labels.kind")
        assert not (tmp_path / "tied").exists()
        new = edgen.select(
            copy, tmp_path / "new", "'k4' not in labels.kind", split_by="labels.kind", test=0.4
        )
        found: defaultdict[str, set[str]] = defaultdict(set)
        for name, side in by_reader(new.folder).items():
            found[side] |= {value[name], name.split("-")[1]}
        assert found["test"]
        assert not found["train"] & found["test"]


def test_msdialogs_choice_of_threads(run: Path, tmp_path: Path) -> None:
    """The choice of threads in docs/forum.md: 3 to 10 turns, 2 to 4 participants, an accepted answer, some
    categories."""
    where = [
        "3 <= turns <= 10 and 2 <= participants <= 4 and outcome.accepted",
        "outcome.category in ['biology', 'physics']",
    ]
    wanted = {
        one.id
        for one in edgen.open(run).conversations()
        if (outcome := one.outcome or {})["answers"]
        and 3 <= len(one.turns) <= 10
        and 2 <= len({turn.data["user_id"] for turn in one.turns}) <= 4
        and outcome["category"] in ("biology", "physics")
    }
    new = edgen.select(run, tmp_path / "new", where)
    assert {one.id for one in new.conversations()} == wanted
    assert len(wanted) > 1


class TestInOrder:
    def test_the_latest_are_the_test_side(self, command: Command, run: Path, tmp_path: Path) -> None:
        new = edgen.select(run, tmp_path / "new", split_by="outcome.dialog_time", in_order=True, test=0.25)
        times = sides(new.folder, "dialog_time")
        assert max(times["train"]) < min(times["test"])
        numbers = sides(new.folder, "number")
        assert not numbers["train"] & numbers["test"]
        found = [*by_reader(new.folder).values()]
        assert abs(found.count("test") - len(found) / 4) <= 1
        # A selection from it keeps the rule, and is split again by it.
        again = edgen.select(new, tmp_path / "again", "scenario.index < 20")
        times = sides(again.folder, "dialog_time")
        assert max(times["train"]) < min(times["test"])
        found = [*by_reader(again.folder).values()]
        assert abs(found.count("test") - len(found) / 4) <= 1
        assert command("compare", new.folder, again.folder).code == 0
        ended = command("merge", run, new.folder, "-o", tmp_path / "merged")
        assert (ended.code, "was selected from another" in ended.err) == (2, True)

    def test_ties_are_never_apart(self, run: Path, tmp_path: Path) -> None:
        first = edgen.select(run, tmp_path / "first", "scenario.index < 20")
        times = {one.id: (one.outcome or {})["dialog_time"][:10] for one in first.conversations()}
        put_layer(first, "day", {name: day[-2:] for name, day in times.items()})
        new = edgen.select(first, tmp_path / "new", split_by="labels.day", in_order=True, test=0.5)
        split = by_reader(new.folder)
        days = {
            side: {day for name, day in times.items() if split[name] == side} for side in ("train", "test")
        }
        assert max(days["train"]) < min(days["test"])


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--split-by", "outcme.category"], 2, "--split-by outcme.category: there is no such dimension"),
        (["--split-by", "near_duplicate"], 2, "there is no such dimension"),
        (["--split-by", "flags", "--in-order"], 2, "has no single values"),
        (["--split-by", "outcome.answers", "--in-order"], 2, "has a list, so its values have no order"),
        (["--split-by", "subject", "--test", "1"], 2, "expected a share of 0 or more and below 1"),
        (["--split-by", "subject", "--test", "nan"], 2, "expected a share of 0 or more and below 1"),
        (["--where", "turns > 1", "--in-order"], 2, "--in-order and --test go with --split-by NAME"),
        (["--draw", "5", "--test", ".2"], 2, "--in-order and --test go with --split-by NAME"),
        (["--split-by", "outcome.unknown"], 2, "none of the conversations that are kept has it"),
        (["--split-by", "turns"], 3, "are linked by it, or by their scenarios"),
        (
            ["--split-by", "subject", "--test", ".01"],
            3,
            "there are 4 groups of conversations that stay together",
        ),
    ],
)
def test_mistakes_are_sentences(
    command: Command, run: Path, tmp_path: Path, options: list[str], code: int, said: str
) -> None:
    ended = command("select", run, *options, "-o", tmp_path / "new")
    assert (ended.code, said in " ".join(ended.err.split())) == (code, True), ended.err
    assert [*tmp_path.iterdir()] == []

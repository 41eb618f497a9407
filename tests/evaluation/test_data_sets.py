"""Samples from runs and from files: splits, clusters, plan, invalid records, and the released sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from edgen.core.errors import DataError, LockedError
from edgen.evaluation.data_sets import open_data_sets
from edgen.evaluation.data_sets.files import split_of
from edgen.evaluation.measuring import measure
from edgen.evaluation.sample import DataSet
from edgen.store.run_folder import RunFolder
from tests import ROOT
from tests.cli.command import Command


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def generated(command: Command, tmp_path: Path, code: int = 0, **changes: Any) -> Path:
    job = tmp_path / "job.yaml"
    base = yaml.safe_load((ROOT / "jobs" / "quickstart.yaml").read_text())
    job.write_text(yaml.safe_dump(base | {"conversations": 30} | changes, sort_keys=False))
    ended = command("generate", job, "-o", tmp_path / "run")
    assert ended.code == code, ended.err
    return tmp_path / "run"


def one(*paths: Path) -> DataSet:
    (found,) = open_data_sets(paths)
    return found


def record(*lines: str, **more: Any) -> dict[str, Any]:
    """Return a record: `"T hello"`."""
    roles = {"T": "Teacher", "S": "Student"}
    background = {
        "topic": "rivers", "student_prefrences": "a", "teacher_prefrences": "b", "student_reactions": "c",
        "teacher_reactions": "d",
    }  # fmt: skip
    return {
        "background_info": background,
        "conversation": [{"role": roles[line[0]], "text": line[2:]} for line in lines],
        **more,
    }


def written(path: Path, *records: Any) -> Path:
    path.write_text(json.dumps(records))
    return path


def test_runs_of_one_job_are_told_apart_by_their_folders(command: Command, tmp_path: Path) -> None:
    first = generated(command, tmp_path, conversations=2)
    second = tmp_path / "again"
    assert command("generate", tmp_path / "job.yaml", "-o", second).code == 0
    assert one(first).name == one(second).name == "quickstart"
    assert one(first, second).name == f"{first} + {second}"


def test_a_run_and_its_files_give_the_same_samples(command: Command, tmp_path: Path) -> None:
    run = generated(command, tmp_path, replicates=2)
    ledger, files = list(one(run).samples()), list(one(run / "shards").samples())
    by_id = {sample.id: sample for sample in files}
    assert len(ledger) == len(files) == 60
    for sample in ledger:
        same = by_id[sample.id]
        assert (same.turns, same.split, same.marker, same.ended_by, same.probability, same.simulated) == (
            sample.turns, sample.split, sample.marker, sample.ended_by, sample.probability, True,
        )  # fmt: skip
    assert {sample.split for sample in ledger} == {"train", "test"}
    # two replicates of a scenario are one cluster, from files too
    clusters = {(sample.scenario.index, by_id[sample.id].scenario.index) for sample in ledger}
    assert len(clusters) == 30


def test_every_planned_conversation_has_a_fate(command: Command, tmp_path: Path) -> None:
    backends = {"default": {"type": "simulator", "faults": "refusal=0.3"}}
    run = generated(command, tmp_path, 3, backends=backends, asks=1, replicates=2)
    data_set = one(run)
    plan = list(data_set.plan() or ())
    assert [(fate.scenario.index, fate.replicate) for fate in plan] == [
        (i, r) for i in range(30) for r in (0, 1)
    ]
    accepted = sum(fate.status == "accepted" for fate in plan)
    assert accepted == data_set.count == len(list(data_set.samples())) < 60
    assert {fate.reason for fate in plan if fate.status == "rejected"} == {"refused"}
    coverage = measure(data_set).values["coverage"]
    assert (coverage.planned, coverage.accepted) == (60, accepted)


def test_arms_are_materials_of_their_own_with_one_test_side(command: Command, tmp_path: Path) -> None:
    arms = {"plain": {}, "json": {"prompt": "education_dialogue_json"}}
    run = generated(command, tmp_path, arms=arms)
    plain, other = open_data_sets([run])
    assert (plain.name, other.name, plain.arm) == ("plain", "json", "plain")
    sides = [{s.scenario.index: s.split for s in data_set.samples()} for data_set in (plain, other)]
    assert sides[0] == sides[1]
    for data_set in (plain, other):
        (tested,) = (run / "arms" / data_set.name / "shards").glob("conversations_eval*.json")
        ids = {one["id"] for one in json.loads(tested.read_text())}
        assert ids == {s.id for s in data_set.samples() if s.split == "test"}
        alone = one(run / "arms" / data_set.name)
        assert alone.arm == ""
        assert list(alone.samples()) == list(data_set.samples())


def test_several_paths_are_one_data_set(command: Command, tmp_path: Path) -> None:
    run = generated(command, tmp_path)
    extra = written(tmp_path / "more.json", record("T hi", "S ho"), "no record")
    together = one(run, extra)
    quality = measure(together)
    assert quality.overview.records == 31
    assert quality.overview.unread == {"no object": 1}
    assert quality.overview.splits["none"] == 1
    # a file has no plan, so it has no survivors of one
    assert (quality.values["coverage"].planned, quality.values["coverage"].accepted) == (30, 30)
    assert quality.values["coverage"].cells is not None
    assert "more.json: files have no known plan, so coverage is that of quickstart alone." in quality.notes
    indices = [sample.scenario.index for sample in together.samples()]
    assert len(set(indices)) == 31


def test_a_partial_run_says_what_is_pending(command: Command, tmp_path: Path) -> None:
    price = {"prompt": 1.0, "completion": 1.0}
    backends = {"default": {"type": "simulator", "price": price, "max_tokens": 1000}}
    run = generated(command, tmp_path, 4, backends=backends, limits={"max_cost": 0.006, "in_flight": 2})
    data_set = one(run)
    assert data_set.notes[0].startswith(f"{30 - (data_set.count or 0)} of 30 conversations are pending")
    statuses = [each.status for each in data_set.plan() or ()]
    assert 0 < statuses.count("accepted") < 30 == len(statuses)
    assert statuses.count("pending") == 30 - statuses.count("accepted")
    value = measure(data_set).values["coverage"].dimensions[1].values[0]
    assert value.planned == value.accepted + value.pending


def test_files_beside_a_run_do_not_thin_out_what_it_lost(command: Command, tmp_path: Path) -> None:
    backends = {"default": {"type": "simulator", "faults": "refusal=0.5"}}
    run = generated(command, tmp_path, 3, backends=backends, asks=1)
    extra = written(tmp_path / "more.json", *[record("T hi", "S ho") for _ in range(50)])
    alone, together = measure(one(run)).values["coverage"], measure(one(run, extra)).values["coverage"]
    assert together == alone
    files = measure(one(extra, written(tmp_path / "other.json", record("T a")))).values["coverage"]
    assert files.planned == files.accepted == 51
    assert all(value.survived is None for dimension in files.dimensions for value in dimension.values)


def test_a_run_is_held_while_it_is_read(command: Command, tmp_path: Path) -> None:
    run = generated(command, tmp_path)
    data_set = one(run)
    for reading in (data_set.samples(), iter(data_set.plan() or ())):
        next(reading)
        with pytest.raises(LockedError), RunFolder(run).lock_for_writing():
            pass
        reading.close()  # type: ignore[attr-defined]
    with RunFolder(run).lock_for_writing():
        pass


@pytest.mark.parametrize("arms", [{}, {"plain": {}, "json": {"prompt": "education_dialogue_json"}}])
def test_an_export_for_the_hub_is_read_as_the_run_is(command: Command, tmp_path: Path, arms: Any) -> None:
    run = generated(command, tmp_path, replicates=2, **({"arms": arms} if arms else {}))
    assert command("export", run, "--to", "hf", "--files", "jsonl", "-o", tmp_path / "hf").code == 0
    whole = [sample for data_set in open_data_sets([run]) for sample in data_set.samples()]
    exported = {sample.id: sample for sample in one(tmp_path / "hf").samples()}
    assert len(exported) == len(whole)
    for sample in whole:
        same = exported[sample.id]
        assert (same.turns, same.split, same.probability, same.ended_by, same.simulated) == (
            sample.turns, sample.split, sample.probability, sample.ended_by, True,
        )  # fmt: skip
        assert same.scenario["topic"] == sample.scenario["topic"]
        assert same.scenario["teacher_reaction"] == sample.scenario["teacher_reaction"]
    clusters = {sample.scenario.index for sample in exported.values()}
    assert len(clusters) == 30 * max(len(arms), 1)


def test_a_held_run_is_said(command: Command, tmp_path: Path) -> None:
    run = generated(command, tmp_path)
    with RunFolder(run).lock_for_writing(), pytest.raises(LockedError, match="works on this run"):
        open_data_sets([run])


def test_nothing_accepted_is_still_measured(command: Command, tmp_path: Path) -> None:
    backends = {"default": {"type": "simulator", "faults": "refusal=1.0"}}
    run = generated(command, tmp_path, 3, backends=backends, asks=1)
    quality = measure(one(run))
    assert (
        quality.overview.records,
        quality.values["coverage"].planned,
        quality.values["coverage"].lost_cells,
    ) == (0, 30, 30)


@pytest.mark.parametrize(
    ("name", "side"),
    [
        ("conversations_train1.json", "train"),
        ("conversations_train.json", "train"),
        ("conversations_eval.json", "test"),
        ("train-00000-of-00004.jsonl", "train"),
        ("test.jsonl", "test"),
        ("validation.jsonl", "test"),
        ("my.dev.json", "test"),
        ("training.json", None),
        ("contest.json", None),
        ("data.json", None),
    ],
)
def test_a_files_name_tells_its_side(name: str, side: str | None) -> None:
    assert split_of(name) == side


def test_what_is_no_record_is_counted_by_reason(tmp_path: Path) -> None:
    good = record("T hi", "S ho", id="a", probability=0.25)
    path = written(
        tmp_path / "mixed.json", good, 3, {"conversation": []}, {**good, "background_info": {"topic": "x"}},
        {**good, "conversation": []}, {**good, "conversation": [{"role": "Teacher"}]},
        {**good, "conversation": [{"role": "Parent", "text": "x"}]}, record("T \ud83d\ude42", probability=7),
    )  # fmt: skip
    data_set = one(path)
    for _ in range(2):
        samples = list(data_set.samples())
        assert [(sample.id, sample.probability) for sample in samples] == [
            ("a", 0.25),
            ("mixed.json[7]", None),
        ]
        assert data_set.unread == {
            "no object": 1, "no background_info": 1, "background_info without its five texts": 1,
            "no list of turns": 1, "a turn without a text": 1, "a role that is neither Teacher nor Student": 1,
        }  # fmt: skip
    assert data_set.plan() is None


def test_nothing_readable_is_an_error_that_says_what_was_expected(tmp_path: Path) -> None:
    path = written(tmp_path / "other.json", {"text": "x"}, {"text": "y"})
    with pytest.raises(DataError, match=r"none of the layouts that edgen reads: .*Education Dialogue"):
        one(path)
    path = written(tmp_path / "broken.json", {"background_info": {}}, {"background_info": None})
    with pytest.raises(
        DataError, match=r"no record of Education Dialogue .* can be read \(1 × background_info"
    ):
        list(one(path).samples())
    with pytest.raises(DataError, match="no such file"):
        list(one(tmp_path / "nowhere.json").samples())


def test_debris_and_markers_are_told_and_taken_out(tmp_path: Path) -> None:
    path = written(
        tmp_path / "data.json",
        record('T Shall we begin?"",', 'S Yes.",', "T Good. [end of conversation]"),
        record("T Hello.", "S ...", "T [End of conversation]"),
        record("T Hello.", "S Bye. [end of conversation]", "T And another thing."),
        record("T Hello.", "S Bye."),
    )
    first, second, third, fourth = one(path).samples()
    assert [turn.text for turn in first.turns] == ["Shall we begin?", "Yes.", "Good."]
    assert (first.marker, first.ended_by, first.entries) == ("suffix", "Teacher", 3)
    assert set(first.defects) == {"doubled_quotes", "quote_comma"}
    assert (second.marker, len(second.turns), second.entries) == ("own_turn", 1, 3)
    assert (third.marker, len(third.turns)) == ("inside", 2)
    assert (fourth.marker, fourth.ended_by) == ("absent", None)


def test_the_released_sample_is_what_a_person_counts(shared_data: Path) -> None:
    quality = measure(one(shared_data / "ed_release_sample.json"))
    overview, turns = quality.overview, quality.values["lengths"].turns
    assert overview.records == 19
    assert (turns.min, turns.max) == (12, 19)
    assert overview.defects["quote_comma"] == 3
    assert overview.markers == {"suffix": 10, "own_turn": 8, "inside": 0, "absent": 1}
    assert overview.unread == {}
    # Counted by eye in the file's text: records that contain `",` at the end of a turn.
    records = json.loads((shared_data / "ed_release_sample.json").read_text())
    by_eye = [r for r in records if any(t["text"].rstrip().endswith('",') for t in r["conversation"])]
    assert len(by_eye) == 3

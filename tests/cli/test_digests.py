"""Damaged files of a run: each command that reads one reports it and makes no call."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bench import flips
from edgen.core.kept_files import DIGESTS
from tests.cli.command import Command, call

JOB = """
name: run
seed: 3
conversations: 3
replicates: 2
branch: {at: sampled}
space: education_dialogue
protocol: selfplay
prompts: {teacher: selfplay_teacher, student: selfplay_student}
selfplay: {first: teacher, max_turns: 4, closing: student}
backends: {default: {type: simulator}}
"""
ASKED = ("--by", "oracle", "--credit", "rollouts", "--rollouts", "1")
LABELS = ("--labels", "teacher_moves", "--by", "default", "--layer", "moves")
WRITE = ("--write", "paraphrases", "--by", "default", "--agent", "Teacher", "--after", "1")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a job and its run `run` with pairs, a layer, written texts and votes."""
    folder = tmp_path_factory.mktemp("digests")
    (folder / "job.yaml").write_text(JOB)
    run = folder / "run"
    for arguments in (
        ("generate", folder / "job.yaml", "-o", run),
        ("pairs", run, *ASKED),
        ("annotate", run, *LABELS),
        ("candidates", run, *WRITE),
    ):
        assert call(*arguments) == 0, arguments
    pair = json.loads((run / "pairs" / "pairs.jsonl").read_text().splitlines()[0])
    vote = {"a": pair["a"]["id"], "b": pair["b"]["id"], "choice": "a", "rater": "one"}
    (folder / "votes.jsonl").write_text(json.dumps(vote) + "\n")
    assert call("pairs", run, "--by", "human", "--human", folder / "votes.jsonl") in (0, 3)
    assert call("pairs", run, *ASKED) == 0
    return folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "all")
    return tmp_path / "all" / "run"


def calls(run: Path) -> int:
    """Return the number of answers in the run's ledgers."""
    total = 0
    for path in run.rglob("*.db"):
        with sqlite3.connect(path) as connection:
            total += connection.execute("SELECT COUNT(*) FROM replies").fetchone()[0]
        connection.close()
    return total


def flip(path: Path, place: int = 40) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    """Cut the last line off."""
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


READERS: dict[str, list[tuple[str | Path, ...]]] = {
    "inputs/selfplay_teacher.j2": [
        ("pairs", *ASKED),
        ("stats",),
        ("export", "--to", "sft"),
        ("select", "--where", "turns > 1"),
    ],
    "inputs/space.yaml": [("pairs", *ASKED), ("annotate", *LABELS), ("candidates", *WRITE), ("estimate",)],
    "job.yaml": [("pairs", *ASKED), ("report",), ("stats", "--judge", "1")],
    "layers/moves/labels.jsonl": [("stats",), ("select", "--where", "turns > 1"), ("export", "--to", "csv")],
    "layers/moves/layer.json": [("annotate", *LABELS), ("select", "--where", "turns > 1")],
    "pairs/pairs.jsonl": [
        ("export", "--to", "trl-dpo"),
        ("select", "--where", "turns > 1"),
    ],
    "pairs/votes.jsonl": [("pairs", *ASKED), ("select", "--where", "turns > 1")],
    "candidates/paraphrases.jsonl": [("select", "--where", "turns > 1")],
}
_WRITING = ("export", "select", "report")


@pytest.mark.parametrize("damage", [flip, cut])
@pytest.mark.parametrize(
    ("file", "asked"),
    [(file, asked) for file, several in READERS.items() for asked in several],
)
def test_a_damaged_file_is_refused_by_name_and_nothing_is_asked(
    command: Command,
    run: Path,
    tmp_path: Path,
    file: str,
    asked: tuple[str, ...],
    damage: Callable[[Path], None],
) -> None:
    damage(run / file)
    before, (name, *options) = calls(run), asked
    out = ("-o", tmp_path / "out") if name in _WRITING else ()
    ended = command(name, run / "job.yaml" if name == "estimate" else run, *options, *out)
    assert (ended.code, Path(file).name in ended.err) == (2, True), ended
    assert calls(run) == before


class TestInputs:
    def test_the_ledger_puts_them_back(self, command: Command, run: Path) -> None:
        before = {path: path.read_bytes() for path in (run / "job.yaml", *(run / "inputs").iterdir())}
        for path in before:
            flip(path)
        (run / "inputs" / "space.yaml").unlink()
        assert command("validate", run).code == 3
        ended = command("validate", run, "--restore", "--json")
        assert (ended.code, len(json.loads(ended.out)["restored"])) == (0, len(before))
        assert {path: path.read_bytes() for path in before} == before
        made = calls(run)
        assert command("pairs", run, *ASKED).code == 0
        assert calls(run) == made

    def test_the_job_writes_them_again(self, command: Command, run: Path) -> None:
        path, made = run / "inputs" / "selfplay_teacher.j2", calls(run)
        before = path.read_bytes()
        flip(path)
        ended = command("generate", run.parent / "job.yaml", "-o", run)
        assert (ended.code, path.read_bytes() == before, calls(run)) == (0, True, made)
        assert "is restored from the ledger" in ended.err

    def test_who_edits_a_copy_hears_what_to_edit(self, command: Command, run: Path) -> None:
        path = run / "inputs" / "selfplay_teacher.j2"
        path.write_text(path.read_text() + "Be brief.\n")
        for asked in (("pairs", run, *ASKED), ("generate", run / "job.yaml", "-o", run.parent / "other")):
            ended = command(*asked)
            assert ended.code == 2
            assert "edit the project's own file and run `edgen generate`" in " ".join(ended.err.split())

    def test_without_a_copy_the_ledger_puts_nothing_back(self, command: Command, run: Path) -> None:
        with sqlite3.connect(run / "run.db") as connection:
            connection.execute(
                "UPDATE meta SET value = replace(value, 'topic', 'tropic') WHERE name = 'inputs'"
            )
        connection.close()
        flip(run / "inputs" / "space.yaml")
        ended = command("validate", run, "--restore")
        assert (ended.code, "the ledger has no copy of the original" in " ".join(ended.err.split())) == (
            2,
            True,
        )

    def test_damaged_digests_are_written_again_for_the_inputs(self, command: Command, run: Path) -> None:
        (run / DIGESTS).write_bytes(b"")
        assert command("pairs", run, *ASKED).code == 2
        ended = command("validate", run, "--restore")
        assert (ended.code, "without a digest" in ended.out) == (0, True), ended
        assert command("pairs", run, *ASKED).code == 0

    def test_arms_have_their_copies_too(self, command: Command, tmp_path: Path) -> None:
        job = yaml.safe_load(JOB) | {"arms": {"one": {}, "two": {"selfplay": {"max_turns": 3}}}}
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
        run = tmp_path / "run"
        assert command("generate", tmp_path / "job.yaml", "-o", run).code == 0
        files = [
            run / "job.yaml",
            run / "arms" / "numbers.json",
            run / "inputs" / "space.yaml",
            run / "arms" / "two" / "job.yaml",
        ]
        before = [path.read_bytes() for path in files]
        for path in files:
            flip(path, 3)
            assert command("compare", run).code == 2, path
            assert command("validate", run, "--restore").code == 0, path
        assert [path.read_bytes() for path in files] == before
        for path in files:
            flip(path, 3)
        assert command("generate", tmp_path / "job.yaml", "-o", run).code == 0
        assert [path.read_bytes() for path in files] == before


class TestRepair:
    """The repair that a message names works."""

    @pytest.mark.parametrize(
        ("file", "asked"),
        [
            ("layers/moves/labels.jsonl", ("annotate", *LABELS)),
            ("pairs/pairs.jsonl", ("pairs", *ASKED)),
            ("candidates/paraphrases.jsonl", ("candidates", *WRITE)),
        ],
    )
    def test_a_command_writes_its_file_again_without_a_call(
        self, command: Command, run: Path, file: str, asked: tuple[str, ...]
    ) -> None:
        before, made = (run / file).read_bytes(), calls(run)
        cut(run / file)
        ended = command("validate", run, "--json")
        told = json.loads(ended.out)
        assert ended.code == 3
        assert any(asked[0] in repair for repair in told["repairs"])
        assert command(asked[0], run, *asked[1:]).code == 0
        assert ((run / file).read_bytes(), calls(run)) == (before, made)
        assert command("validate", run).code == 0

    @pytest.mark.parametrize("name", ["labels.jsonl", "layer.json"])
    def test_generate_writes_the_layer_of_a_gate_again(
        self, command: Command, tmp_path: Path, name: str
    ) -> None:
        job = {
            "name": "gated", "conversations": 3, "space": "education_dialogue", "prompt": "education_dialogue",
            "protocol": "oneshot", "backends": {"default": {"type": "simulator"}},
            "gates": {"good": "'probing' in labels.teacher_moves or turns > 0"}, "labels": {"teacher_moves": {}},
        }  # fmt: skip
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
        asked = ("generate", tmp_path / "job.yaml", "-o", tmp_path / "run")
        assert command(*asked).code == 0
        path = tmp_path / "run" / "layers" / "teacher_moves" / name
        before = path.read_bytes()
        flip(path)
        ended = command(*asked)
        assert (ended.code, path.read_bytes() == before) == (0, True), ended
        assert "the run is complete" in command(*asked).err


class TestValidate:
    def test_a_whole_run_is_valid(self, command: Command, run: Path) -> None:
        ended = command("validate", run, "--json")
        told = json.loads(ended.out)
        assert (ended.code, told["repairs"], [p for file in told["files"] for p in file["problems"]]) == (
            0,
            [],
            [],
        )

    def test_a_ledger_without_two_pages_is_damaged(self, command: Command, run: Path) -> None:
        for ledger in (run / "run.db", *run.glob("pairs/*/*.db"), *run.glob("layers/*/*/*.db")):
            data = ledger.read_bytes()
            ledger.write_bytes(data[: 5 * 4096] + data[7 * 4096 :])
            ended = command("validate", run)
            assert (ended.code, ledger.name in ended.out) == (3, True), ended
            ledger.write_bytes(data)

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE replies SET text = text || '!' WHERE rowid = 2",
            "UPDATE records SET data = replace(data, 'Teacher', 'Teachex') WHERE rowid = 1",
            "DELETE FROM records WHERE rowid = 1",
        ],
    )
    def test_a_changed_row_is_damage(self, command: Command, run: Path, change: str) -> None:
        with sqlite3.connect(run / "run.db") as connection:
            connection.execute(change)
        connection.close()
        ended = command("validate", run)
        assert (ended.code, "run.db" in ended.out) == (3, True), ended

    def test_finished_files_are_held_against_the_ledger(self, command: Command, run: Path) -> None:
        cut(run / "rejected.jsonl") if (run / "rejected.jsonl").stat().st_size else (
            run / "rejected.jsonl"
        ).write_text("{}\n")
        manifest = json.loads((run / "shards" / "manifest.json").read_bytes())
        (run / "shards" / "manifest.json").write_text(json.dumps(manifest | {"simulated": False}))
        told = json.loads(command("validate", run, "--json").out)
        assert {Path(file["path"]).name for file in told["files"] if file["problems"]} == {
            "rejected.jsonl",
            "manifest.json",
        }
        assert any("edgen generate" in repair for repair in told["repairs"])

    def test_a_manifest_that_is_none_is_damage(self, command: Command, run: Path) -> None:
        cut(run / "shards" / "manifest.json")
        ended = command("validate", run)
        assert (ended.code, "edgen generate" in ended.out) == (3, True), ended

    @pytest.mark.parametrize("lost", [["job.yaml"], ["job.yaml", DIGESTS]])
    def test_a_run_without_its_job_is_still_a_run(self, command: Command, run: Path, lost: list[str]) -> None:
        before = {name: (run / name).read_bytes() for name in lost}
        for name in lost:
            (run / name).unlink()
        ended = command("validate", run)
        assert (ended.code, f"{run / 'job.yaml'}: $: it is missing" in ended.out) == (3, True), ended
        ended = command("validate", run, "--restore", "--json")
        assert {Path(path).name for path in json.loads(ended.out)["restored"]} == {*lost}
        assert (run / "job.yaml").read_bytes() == before["job.yaml"]
        assert (run / DIGESTS).is_file()
        assert command("validate", run).code == 0

    @pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"")])
    def test_a_ledger_of_answers_that_is_missing_or_empty_is_damage(
        self, command: Command, run: Path, damage: Callable[[Path], object]
    ) -> None:
        ledgers = [path for path in run.rglob("*.db") if path.parent != run]
        assert {path.relative_to(run).parts[0] for path in ledgers} == {"pairs", "layers", "candidates"}
        for ledger in ledgers:
            damage(ledger)
        ended = command("validate", run, "--json")
        found = {Path(file["path"]) for file in json.loads(ended.out)["files"] if file["problems"]}
        assert (ended.code, found) == (3, {*ledgers})

    def test_the_ledger_that_a_file_accompanies_is_missed(self, command: Command, run: Path) -> None:
        (ledger,) = run.glob("layers/moves/annotators/*.db")
        for path in ledger.parent.glob(f"{ledger.name}*"):
            path.unlink()
        ended = command("validate", run)
        assert (ended.code, f"{ledger}: $: the ledger is missing" in ended.out) == (0, True)

    def test_the_folder_of_an_arm_is_missed(self, command: Command, tmp_path: Path) -> None:
        (tmp_path / "job.yaml").write_text(JOB + "arms: {plain: {}, longer: {selfplay: {max_turns: 5}}}\n")
        assert command("generate", tmp_path / "job.yaml", "-o", tmp_path / "run").code == 0
        gone = tmp_path / "run" / "arms" / "longer"
        shutil.rmtree(gone)
        ended = command("validate", tmp_path / "run")
        assert (ended.code, f"{gone}: $: the folder of this arm is missing" in ended.out) == (0, True)

    @pytest.mark.parametrize("damage", [Path.unlink, lambda path: flip(path, 20)])
    def test_a_damaged_count_of_stored_answers_is_named(
        self, command: Command, run: Path, damage: Callable[[Path], object]
    ) -> None:
        count = run / "run.db-acked"
        damage(count)
        ended = command("validate", run)
        assert (ended.code, f"{count}: $: there is no valid count" in ended.out) == (0, True), ended

    def test_lost_digests_are_named(self, command: Command, run: Path) -> None:
        (run / DIGESTS).unlink()
        assert f"{run / DIGESTS}: $: there are no digests" in command("validate", run).out

    def test_a_run_of_an_older_edgen_is_taken_and_told_of(self, command: Command, run: Path) -> None:
        (run / DIGESTS).unlink()
        ended = command("validate", run)
        assert (ended.code, "written by an older edgen" in ended.out) == (0, True)
        made = calls(run)
        assert command("pairs", run, *ASKED).code == 0
        assert calls(run) == made
        flip(run / "inputs" / "selfplay_teacher.j2", 900)
        ended = command("pairs", run, *ASKED)
        assert (
            ended.code,
            "the templates have changed since the conversations were made" in " ".join(ended.err.split()),
        ) == (2, True)
        assert calls(run) == made


@pytest.mark.only_long
def test_a_short_campaign_finds_nothing_silent(whole: Path) -> None:
    readings = tuple(one for one in flips.SELFPLAY.readings if one.name == "pairs")
    assert flips.flips(1, run=whole / "run", kind=flips.SELFPLAY._replace(readings=readings)) == []


def test_an_annotator_whose_ledger_was_removed_hears_it(command: Command, run: Path) -> None:
    (ledger,) = run.glob("layers/moves/annotators/*.db")
    ledger.unlink()
    ended = command("annotate", run, *LABELS)
    assert (
        ended.code,
        f"{ledger.name}: " in ended.err,
        "answers that were stored are missing" in ended.err,
    ) == (
        0,
        True,
        True,
    )


def test_stats_of_a_run_without_its_ledger_says_what_was_read(command: Command, run: Path) -> None:
    (run / "run.db").unlink()
    ended = command("stats", run, "--json")
    assert ended.code == 0
    assert any(
        f"{run / 'run.db'}: the ledger of this run is missing" in note
        for note in json.loads(ended.out)["notes"]
    )


def test_generate_says_that_a_damaged_outcome_is_made_again(command: Command, run: Path) -> None:
    with sqlite3.connect(run / "run.db") as connection:
        connection.execute("UPDATE outcomes SET status = 'akcepted' WHERE scenario = 1 AND task = 0")
    connection.close()
    ended = command("export", run, "--to", "sft", "-o", run.parent / "out")
    assert (ended.code, "scenario 1 (task 0) is damaged" in " ".join(ended.err.split())) == (2, True)
    made = calls(run)
    ended = command("generate", run.parent / "job.yaml", "-o", run)
    assert (
        ended.code,
        "run.db: outcomes of stored answers were damaged" in " ".join(ended.err.split()),
    ) == (0, True)
    assert calls(run) == made

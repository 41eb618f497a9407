"""Pieces of a job, merged, equal the undivided run; nothing is lost."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from edgen.core.files import find_target
from tests import fork_server
from tests.cli.command import Command
from tests.dose import dose
from tests.store.ledger.hostile import seal

COUNT = 42
FAULTY = {"type": "simulator", "faults": "garbage=0.1,refusal=0.05"}
PLAYING: dict[str, Any] = {
    "protocol": "selfplay",
    "prompt": None,
    "replicates": 3,
    "branch": {"at": "sampled"},
    "selfplay": {"closing": "student", "max_turns": 6},
}
JOBS: dict[str, dict[str, Any]] = {
    "oneshot": {},
    "replicates": {"replicates": 2, "design": "random", "shards": {"train": 3, "test": 2}},
    "topic": {"split": {"test": 0.2, "by": "topic"}},
    "selfplay": {**PLAYING, "replicates": 2, "selfplay": {"closing": "student", "max_turns": 3}},
    "arms": {"arms": {"plain": {}, "json": {"prompt": "education_dialogue_json"}}, "split": {"test": 0.3}},
}
CUTS: list[list[tuple[int, int]]] = [
    [(0, 42)],
    [(30, 42), (0, 5), (5, 30)],
    [(0, 1), (1, 3), (3, 10), (10, 20), (20, 21), (21, 40), (40, 42)],
    [(15, 30), (0, 20), (10, 42)],
]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def job(folder: Path, **changes: Any) -> Path:
    values = {
        "name": "t", "seed": 5, "conversations": COUNT, "space": "education_dialogue",
        "prompt": "education_dialogue", "asks": 1, "backends": {"default": FAULTY},
    }  # fmt: skip
    path = folder / "job.yaml"
    path.write_text(json.dumps({key: v for key, v in (values | changes).items() if v is not None}))
    return path


def finished(run: Path) -> dict[str, str]:
    """Return the digests of the finished files of a run and of its arms, by their paths."""
    found = [
        *run.rglob("shards/*"),
        *run.rglob("rejected.jsonl"),
        *run.rglob("job.yaml"),
        *run.rglob("inputs/*"),
    ]
    return {str(p.relative_to(run)): hashlib.sha256(p.read_bytes()).hexdigest() for p in found}


def state_of(run: Path) -> dict[str, tuple[str, int]]:
    """Return every file of a folder with its digest and the time of its last change."""
    return {
        str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in sorted(run.rglob("*"))
        if path.is_file()
    }


def pieces(command: Command, path: Path, cuts: list[tuple[int, int]]) -> list[Path]:
    made = []
    for number, (first, end) in enumerate(cuts):
        run = path.parent / f"piece-{number}"
        ended = command("generate", path, "-o", run, "--range", f"{first}:{end}")
        assert ended.code in (0, 3), ended.err
        made.append(run)
    return made


def rows(run: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(run / "run.db")) as connection:
        return connection.execute(sql).fetchall()


def change(run: Path, *sql: str) -> None:
    with closing(sqlite3.connect(run / "run.db")) as connection, connection:
        for statement in sql:
            connection.execute(statement)
        seal(connection)


class TestTheUndividedRun:
    @pytest.mark.long
    @pytest.mark.parametrize("kind", dose(["oneshot", "arms"], [*JOBS]))
    def test_to_the_byte(self, command: Command, tmp_path: Path, kind: str) -> None:
        """The merged bytes are the same for any division, any overlap of the pieces, and any order."""
        path = job(tmp_path, **JOBS[kind])
        whole = command("generate", path, "-o", tmp_path / "whole", "--json")
        assert whole.code in (0, 3), whole.err
        assert sum(path.stat().st_size for path in (tmp_path / "whole").rglob("rejected.jsonl")) > 0
        counts = ("state", "planned", "accepted", "rejected", "failed", "pending")
        for cuts in CUTS if kind == "oneshot" else CUTS[-1:]:
            parts = pieces(command, path, cuts)
            before = [state_of(part) for part in parts]
            ended = command("merge", *parts, "-o", tmp_path / "merged", "--json")
            assert ended.code == whole.code, ended.err
            assert finished(tmp_path / "merged") == finished(tmp_path / "whole")
            facts, expected = json.loads(ended.out), json.loads(whole.out)
            assert {key: facts[key] for key in counts} == {key: expected[key] for key in counts}
            assert "range" not in facts
            assert [state_of(part) for part in parts] == before, "an input was touched"
            again = command("generate", path, "-o", tmp_path / "merged", "--json")
            assert json.loads(again.out)["calls"]["now"] == 0
            assert finished(tmp_path / "merged") == finished(tmp_path / "whole")
            for folder in (*parts, tmp_path / "merged"):
                shutil.rmtree(folder)

    def test_what_was_merged_is_merged_again(self, command: Command, tmp_path: Path) -> None:
        path = job(tmp_path)
        command("generate", path, "-o", tmp_path / "whole")
        a, b, c = pieces(command, path, [(0, 10), (10, 30), (30, 42)])
        assert command("merge", a, c, "-o", tmp_path / "some").code == 3
        assert not (tmp_path / "some" / "shards").exists()
        command("merge", tmp_path / "some", b, "-o", tmp_path / "all")
        assert finished(tmp_path / "all") == finished(tmp_path / "whole")

    def test_limits_and_batches_differ(self, command: Command, tmp_path: Path) -> None:
        """Settings that shape neither answers nor files may differ: the files are the same."""
        path = job(tmp_path)
        command("generate", path, "-o", tmp_path / "whole")
        for name, more in (("a", ("--range", "0:20")), ("b", ("--range", "20:42"))):
            settings = ("--set", "limits.in_flight=3", "--set", f"batch.poll={len(name)}m")
            command("generate", path, "-o", tmp_path / name, *more, *(settings if name == "a" else ()))
        command("merge", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "all")
        whole, merged = finished(tmp_path / "whole"), finished(tmp_path / "all")
        assert {name for name in whole if whole[name] != merged[name]} == {"job.yaml"}

    def test_files_of_batches_and_what_came_back_are_kept(self, command: Command, tmp_path: Path) -> None:
        parts = pieces(command, job(tmp_path), [(0, 20), (20, 42)])
        for number, part in enumerate(parts):
            folder = part / "run.batches"
            folder.mkdir()
            (folder / "00001.default.jsonl").write_text(f"asked {number}")
            (folder / "00001.default.results.jsonl").write_text(f"answered {number}")
            (folder / ".00002.default.jsonl.0123456789abcdef.part").write_text("half")
            change(
                part,
                "INSERT INTO batches VALUES (1, 'read', 'f', 'default', 'tok', 1, 9, 'run.batches/00001.default.jsonl', "
                "'f1', 'b1', 1, 2, NULL)",
                "INSERT INTO batches VALUES (2, 'dropped', 'f', 'default', 'tok', 1, 9, '/elsewhere/x.jsonl', "
                "NULL, NULL, 1, 2, NULL)",
                f"INSERT INTO returned VALUES ({number}, 0, 0, 0, x'00', 'timeout', 'late', 2)",
                "INSERT INTO returned VALUES (9, 0, 0, 0, x'00', NULL, NULL, 0)",
            )
        command("merge", *parts, "-o", tmp_path / "all")
        merged = tmp_path / "all"
        files = [file for (file,) in rows(merged, "SELECT file FROM batches ORDER BY id")]
        assert files[1] == files[3] == "/elsewhere/x.jsonl"
        for number, file in enumerate(files[::2]):
            assert (merged / file).read_text() == f"asked {number}"
            assert (merged / file).with_suffix(".results.jsonl").read_text() == f"answered {number}"
        assert not [path for path in merged.rglob("*") if find_target(path.name)]
        assert rows(merged, "SELECT scenario, tries FROM returned ORDER BY scenario") == [
            (0, 2),
            (1, 2),
            (9, 0),
        ]
        again = command("merge", merged, "-o", tmp_path / "again")
        assert again.code in (0, 3), again.err
        (first, *_) = rows(tmp_path / "again", "SELECT file FROM batches ORDER BY id")[0]
        assert (tmp_path / "again" / first).read_text() == "asked 0"

    def test_a_gap_is_told_and_filled(self, command: Command, tmp_path: Path) -> None:
        path = job(tmp_path)
        command("generate", path, "-o", tmp_path / "whole")
        parts = pieces(command, path, [(5, 10), (20, 41)])
        ended = command("merge", *parts, "-o", tmp_path / "run", "--json")
        assert ended.code == 3
        assert (
            "none of the runs has scenarios 0-4, scenarios 10-19, scenario 41 (16 conversations pending)"
            in ended.err
        )
        facts = json.loads(ended.out)
        assert (facts["state"], facts["pending"], facts["planned"]) == ("stopped", 16, COUNT)
        assert [(gap["first"], gap["end"]) for gap in facts["gaps"]] == [(0, 5), (10, 20), (41, 42)]
        filled = command("generate", path, "-o", tmp_path / "run", "--json")
        assert json.loads(filled.out)["calls"]["now"] == 16
        assert finished(tmp_path / "run") == finished(tmp_path / "whole")

    @pytest.mark.crash
    def test_a_run_that_was_killed_and_one_that_was_not(self, command: Command, tmp_path: Path) -> None:
        """Rows that only the log of a ledger holds count, and the log is left as it is."""
        path = job(tmp_path, backends={"default": {**FAULTY, "latency_ms": 30}}, limits={"in_flight": 2})
        command("generate", path, "-o", tmp_path / "whole", "--set", "limits.in_flight=64")
        killed = tmp_path / "killed"
        asyncio.run(_kill_after(10, killed, path))
        assert (killed / "run.db-wal").stat().st_size > 0
        for leftover in killed.glob("run.db-shm"):
            leftover.unlink()
        (rest,) = pieces(command, path, [(5, 42)])
        before = state_of(killed)
        assert command("merge", killed, rest, "-o", tmp_path / "run").code in (0, 3)
        assert state_of(killed) == before
        shards, expected = (finished(tmp_path / folder) for folder in ("run", "whole"))
        data = [name for name in expected if "conversations_" in name or name == "rejected.jsonl"]
        assert {name: shards[name] for name in data} == {name: expected[name] for name in data}


async def _kill_after(outcomes: int, run: Path, job: Path) -> None:
    """Begin a run, and kill it at this many outcomes."""
    process = await fork_server.start("generate", job, "-o", run)
    async with asyncio.timeout(120):
        while _outcomes(run) < outcomes:
            await asyncio.sleep(0.02)
    process.kill()
    await process.communicate()


def _outcomes(run: Path) -> int:
    try:
        return int(rows(run, "SELECT COUNT(*) FROM outcomes")[0][0])
    except sqlite3.Error:
        return 0


class TestNothingIsDropped:
    def test_replies_sessions_calls_and_cost_add_up(self, command: Command, tmp_path: Path) -> None:
        price = {"prompt": 1.0, "completion": 2.0}
        path = job(tmp_path, backends={"default": {**FAULTY, "price": price}}, asks=2)
        parts = pieces(command, path, [(0, 20), (20, 42)])
        change(parts[0], "UPDATE sessions SET lost_tokens = 11, lost_usd = 0.5")
        change(parts[1], "INSERT INTO outstanding VALUES (1, NULL, 3, 0, 0, 0, x'00', 100, 0.25)")
        # An answer to another form of the job.
        change(parts[1], "INSERT INTO replies SELECT scenario, task, step, 9, x'ff', finish_reason, refusal, model, simulated, "
               "prompt_tokens, completion_tokens, 0, 0, answered_at, latency, tries, charged_tokens, cost_usd, 'other', 0 "
               "FROM replies LIMIT 1")  # fmt: skip
        facts = [json.loads(command("status", part, "--json").out) for part in parts]
        command("merge", *parts, "-o", tmp_path / "run")
        merged = json.loads(command("status", tmp_path / "run", "--json").out)
        assert merged["calls"]["made"] == sum(one["calls"]["made"] for one in facts)
        for side in ("prompt", "completion"):
            assert merged["tokens"][side] == sum(one["tokens"][side] for one in facts)
        assert merged["cost_usd"] == pytest.approx(sum(one["cost_usd"] for one in facts), abs=1e-12)
        query = "SELECT * FROM replies ORDER BY scenario, task, step, attempt, key"
        assert rows(tmp_path / "run", query) == sorted(row for part in parts for row in rows(part, query))
        assert rows(tmp_path / "run", "SELECT SUM(lost_tokens), SUM(lost_usd) FROM sessions") == [(11, 0.5)]
        assert rows(tmp_path / "run", "SELECT batch, scenario, tokens, usd FROM outstanding") == [
            (None, 3, 100, 0.25)
        ]
        assert len(rows(tmp_path / "run", "SELECT id FROM sessions")) == 3

    def test_of_what_differs_the_first_is_kept_and_the_other_written_down(
        self, command: Command, tmp_path: Path
    ) -> None:
        path = job(
            tmp_path, backends={"default": {"type": "simulator", "price": {"prompt": 1, "completion": 1}}}
        )
        one, other = pieces(command, path, [(0, 30), (20, 42)])
        data = json.loads(rows(other, "SELECT data FROM records WHERE scenario = 25")[0][0])
        data["conversation"][0]["text"] = "Otherwise."
        change(other, f"UPDATE records SET data = CAST('{json.dumps(data).replace(chr(39), '')}' AS BLOB) WHERE scenario = 25",
               "UPDATE replies SET text = 'Otherwise.' WHERE scenario = 25")  # fmt: skip
        ended = command("merge", one, other, "-o", tmp_path / "run", "--json")
        assert ended.code == 0, ended.err
        assert json.loads(ended.out)["duplicates"] == {
            "same": 9, "other": 1, "others": ["t-000025-r0"], "calls": 10, "calls_otherwise": 1,
        }  # fmt: skip
        text = "SELECT text FROM replies WHERE scenario = 25"
        assert rows(tmp_path / "run", text) == rows(one, text)
        dropped = [
            json.loads(line) for line in (tmp_path / "run/merged/duplicates.jsonl").read_text().splitlines()
        ]
        assert [(line["kind"], line["run"], line["scenario"]) for line in dropped] == [
            ("outcome", str(other), 25), ("reply", str(other), 25)]  # fmt: skip
        assert dropped[0]["record"]["conversation"][0]["text"] == dropped[1]["text"] == "Otherwise."
        # A call that was paid twice still counts twice against a budget.
        paid = "SELECT SUM(charged_tokens) FROM replies"
        lost = rows(tmp_path / "run", "SELECT SUM(lost_tokens) FROM sessions")[0][0]
        total = rows(tmp_path / "run", paid)[0][0] + lost
        assert total == rows(one, paid)[0][0] + rows(other, paid)[0][0]
        people = command("merge", other, one, "-o", tmp_path / "turned")
        assert (
            "twice      10 conversations, 9 of them identical; 10 calls, 1 of them with other answers"
            in people.out
        )
        assert "unlike     t-000025-r0" in people.out
        assert rows(tmp_path / "turned", text) == [("Otherwise.",)]

    def test_what_failed_in_one_and_not_in_the_other(self, command: Command, tmp_path: Path) -> None:
        path = job(tmp_path)
        command("generate", path, "-o", tmp_path / "whole")
        one, other = pieces(command, path, [(0, 42), (0, 42)])
        change(one, "UPDATE outcomes SET status = 'failed', reason = 'timeout' WHERE scenario < 9",
               "DELETE FROM records WHERE scenario < 9", "DELETE FROM replies WHERE scenario < 9")  # fmt: skip
        command("merge", one, other, "-o", tmp_path / "run")
        assert finished(tmp_path / "run") == finished(tmp_path / "whole")

    def test_branches_are_those_of_the_conversation_that_is_kept(
        self, command: Command, tmp_path: Path
    ) -> None:
        """Only the kept run's replicates are used where the two runs differ in replicate 0."""
        path = job(tmp_path, **PLAYING, conversations=4)
        one, other = (tmp_path / "one", tmp_path / "other")
        for run in (one, other):
            command("generate", path, "-o", run)
        change(
            one,
            "DELETE FROM outcomes WHERE scenario = 2 AND task = 1",
            "DELETE FROM records WHERE scenario = 2 AND task = 1",
        )
        change(
            other, "UPDATE replies SET text = 'Well, otherwise.' WHERE scenario = 2 AND task = 0 AND step = 0"
        )
        ended = command("merge", one, other, "-o", tmp_path / "run", "--json")
        assert (ended.code, json.loads(ended.out)["pending"]) == (3, 1)
        command("generate", path, "-o", tmp_path / "run")
        command("generate", path, "-o", tmp_path / "whole")
        assert finished(tmp_path / "run") == finished(tmp_path / "whole")

    def test_votes_judges_and_earlier_forms(self, command: Command, tmp_path: Path) -> None:
        path = job(tmp_path, **PLAYING, conversations=12, backends={"default": {"type": "simulator"}})
        parts = pieces(command, path, [(0, 6), (6, 12)])
        for part, scenario in zip(parts, (1, 8), strict=True):
            votes = tmp_path / "votes.jsonl"
            line = {"a": f"t-{scenario:06d}-r0", "b": f"t-{scenario:06d}-r1", "choice": "a", "rater": "kim"}
            votes.write_text(json.dumps(line))
            assert command("pairs", part, "--by", "human", "--human", votes).code == 0
            assert command("pairs", part, "--by", "oracle").code == 0
            (part / "previous" / "1").mkdir(parents=True)
            (part / "previous" / "1" / "rejected.jsonl").write_text(part.name)
        assert command("merge", *parts, "-o", tmp_path / "run").code == 0
        run = tmp_path / "run"
        assert len((run / "pairs" / "votes.jsonl").read_text().splitlines()) == 2
        assert [p.read_text() for p in sorted(run.glob("previous/*/rejected.jsonl"))] == [
            "piece-0",
            "piece-1",
        ]
        assert len(list(run.glob("previous/*/pairs.jsonl"))) == 2
        judge = json.loads(command("status", run, "--json").out)["judges"][0]
        assert (judge["judged"], judge["pending"]) == (36, 0)
        assert command("pairs", run, "--by", "oracle").code == 0
        after = json.loads(command("status", run, "--json").out)["judges"][0]
        assert after["calls"]["made"] == judge["calls"]["made"] > 0, "a judge was asked again"
        assert command("generate", path, "-o", tmp_path / "whole").code == 0
        command("pairs", tmp_path / "whole", "--by", "human", "--human", run / "pairs" / "votes.jsonl")
        command("pairs", tmp_path / "whole", "--by", "oracle")
        lines = [(folder / "pairs" / "pairs.jsonl").read_bytes() for folder in (run, tmp_path / "whole")]
        assert lines[0] == lines[1]


class TestAtomic:
    @pytest.mark.crash
    def test_a_kill_leaves_nothing_that_looks_whole(self, command: Command, tmp_path: Path) -> None:
        path = job(tmp_path)
        parts = pieces(command, path, [(0, 20), (20, 42)])
        script = (
            "import os, signal, edgen.merging.new_run as m; "
            "m._publish = lambda *_: os.kill(os.getpid(), signal.SIGKILL); "
            "from edgen.__main__ import main; main()"
        )
        killed = fork_server.run("merge", *parts, "-o", tmp_path / "run", code=script)
        assert killed.returncode == -signal.SIGKILL
        assert not (tmp_path / "run").exists()
        assert (tmp_path / ".run.merging").is_dir()
        assert command("merge", *parts, "-o", tmp_path / "run").code in (0, 3)
        assert not (tmp_path / ".run.merging").exists()

    def test_a_mistake_leaves_nothing(self, command: Command, tmp_path: Path) -> None:
        path = job(tmp_path)
        parts = pieces(command, path, [(0, 20), (20, 42)])
        change(parts[1], 'UPDATE meta SET value = replace(value, \'"fingerprint":"\', \'"fingerprint":"0\')')
        assert command("merge", *parts, "-o", tmp_path / "run").code == 2
        assert {p.name for p in tmp_path.iterdir()} == {"job.yaml", "piece-0", "piece-1"}

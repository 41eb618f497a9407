"""`edgen candidates`: texts keep the run's order after any kill, and no request is repeated."""

from __future__ import annotations

import asyncio
import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.store.layers import digest_text
from edgen.store.run_reader import RunReader
from tests.cli.command import Command
from tests.execution.batch.test_batch_kill import simulator
from tests.execution.service import Service, end, serve, start

JOB = {
    "name": "t", "seed": 3, "conversations": 5, "replicates": 2, "space": "education_dialogue",
    "prompt": "education_dialogue", "backends": {"default": {"type": "simulator"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return edgen.generate(JOB, output=tmp_path_factory.mktemp("made") / "run", progress=False).folder


def test_a_line_a_turn_of_the_agent_in_the_runs_order(run: Path) -> None:
    found = edgen.candidates(run, "paraphrases", progress=False)
    with RunReader(run) as reader:
        turns = [
            (one.candidate.id, place, "Teacher", digest_text(one.candidate.turns, place))
            for one in reader.conversations()
            for place, turn in enumerate(one.candidate.turns)
            if turn.role == "Teacher" and place >= 3
        ]
        texts = {turn.text for one in reader.conversations() for turn in one.candidate.turns}
    lines = [*found]
    assert [(line.id, line.turn, line.role, line.text_sha256) for line in lines] == turns
    assert found.made is not None
    assert found.made.totals is not None
    assert {line.writer for line in lines} == {found.made.writer.writer}
    assert all(1 <= len({*line.texts}) == len(line.texts) <= 3 for line in lines)
    assert not texts & {text for line in lines for text in line.texts}
    assert (
        found.made.totals.texts
        == sum(len(line.texts) for line in lines)
        == sum(1 for _ in found._list_rows())
    )
    before = found.file.read_bytes()
    again = edgen.candidates(run, "paraphrases", progress=False)
    assert again.made is not None
    assert again.made.writer.calls.made == found.made.writer.calls.made == len(turns)
    assert again.file.read_bytes() == before


def test_one_writer_takes_no_others_place_and_a_sample_grows(run: Path, command: Command) -> None:
    said = ("candidates", run, "--write", "wrong", "--json")
    small = json.loads(command(*said, "--sample", "1").out)
    first = (run / "candidates" / "wrong.jsonl").read_text().splitlines()
    large = json.loads(command(*said, "--sample", "3").out)
    assert {*first} < {*(run / "candidates" / "wrong.jsonl").read_text().splitlines()}
    assert small["writer"] == large["writer"]
    assert small["planned"] < large["planned"] == large["calls"]["made"], "the smaller is not asked for again"
    other = json.loads(command(*said, "--agent", "student", "-n", "1").out)
    assert other["writer"] != large["writer"]
    lines = [json.loads(line) for line in (run / "candidates" / "wrong.jsonl").read_text().splitlines()]
    assert {line["role"] for line in lines} == {"Student"}
    assert f"candidates wrong, {small['writer']}:" in command("status", run).out
    needs = json.loads(command(*said, "--dry-run", "-n", "2").out)
    assert (needs["there"], needs["calls"]["expected"]) == (0, needs["to_write"])
    before = (run / "candidates" / "wrong.jsonl").read_bytes()
    needs = json.loads(command(*said, "--dry-run", "--agent", "student", "-n", "1").out)
    assert (needs["there"], needs["to_write"]) == (other["planned"], 0)
    assert (run / "candidates" / "wrong.jsonl").read_bytes() == before


def test_texts_of_what_is_not_said_any_more_are_left_out(run: Path, tmp_path: Path) -> None:
    edgen.candidates(run, "paraphrases", progress=False)
    other = edgen.generate(JOB, output=tmp_path / "other", seed=4, progress=False).folder
    shutil.copytree(run / "candidates", other / "candidates")
    found = edgen.candidates(other, "paraphrases", progress=False)
    with RunReader(other) as reader:
        for line in found:
            assert digest_text(reader.named(line.id).turns, line.turn) == line.text_sha256
    assert found.made is not None
    assert (found.made.writer.written, found.made.writer.pending) == (found.made.writer.planned, 0)


def test_an_answer_of_a_function_is_read_and_what_is_in_vain_is_counted(run: Path) -> None:
    async def write(request: edgen.Request) -> str:
        last = next(
            line for line in request.messages[0].content.split("\n") if line.startswith("(1) Teacher: ")
        )
        return f"Sure:\n1. {last.removeprefix('(1) Teacher: ')}\n2. Quite another thing.\n3. Quite another thing!"

    found = edgen.candidates(run, "wrong", by="writer", progress=False, backends={"writer": write})
    assert {line.texts for line in found} == {("Quite another thing.",)}
    assert found.made is not None
    assert found.made.totals is not None
    turns = found.made.totals.turns
    assert found.made.totals.dropped == {"same": turns, "twice": turns}
    assert found.made.totals.short == turns


def test_what_cannot_be_meant_is_a_sentence(command: Command, run: Path) -> None:
    def refused(*arguments: str) -> str:
        ended = command("candidates", run, *arguments)
        assert ended.code == 2, ended.err
        return " ".join(ended.err.split())

    assert "--labels is missing" in refused()
    assert "no such role in this run (known: Teacher, Student)" in refused(
        "--write", "wrong", "--agent", "Tutor"
    )
    assert "no turn of Teacher has 99 turns before it" in refused("--write", "wrong", "--after", "99")
    assert "at most 20 texts are written for a turn" in refused("--write", "wrong", "-n", "21")
    assert "no backend 'x'" in refused("--write", "wrong", "--by", "x")
    assert "expects" in refused("--write", "wrong", "--prompt", "label_turns")
    assert "this key does not apply to a writer" in refused("--write", "wrong", "--set", "seed=1")
    assert not (run / "candidates").exists()
    garbage = ("--set", 'backends.writer={"type": "simulator", "faults": "garbage=1"}', "--set", "asks=1")
    ended = command("candidates", run, "--write", "wrong", "--sample", "1", *garbage)
    assert (ended.code, "Nothing could be written: " in " ".join(ended.err.split())) == (3, True)


@pytest.mark.crash
async def test_killed_or_by_batch_the_bytes_are_the_same(made: Path, tmp_path: Path) -> None:
    calm, killed, batch = (
        Path(shutil.copytree(made, tmp_path / name / "run")) for name in ("calm", "killed", "batch")
    )
    said: Any = ("--write", "paraphrases", "--sample", "2", "--set", "limits.in_flight=2")
    service = Service()
    async with serve(service):
        backend = {"type": "openai", "model": "m", "base_url": service.url, "seed": "auto"}
        online = (*said, "--set", f"backends.writer={json.dumps(backend)}")
        assert (await end(await start("candidates", calm, *online))).code == 0
        service.asked.clear()
        service.hold_after = 4
        service.released.clear()
        process = await start("candidates", killed, *online)
        async with asyncio.timeout(60):
            while service.asked.total() <= service.hold_after:
                await asyncio.sleep(0.01)
        process.kill()
        await end(process)
        service.hold_after = None
        service.release()
        ended = await end(await start("candidates", killed, *online, "--json"))
    assert ended.code == 0, ended.err
    assert (ended.facts["written"], ended.facts["pending"]) == (ended.facts["planned"], 0)
    assert sum(count - 1 for count in service.asked.values()) <= 3, "what was stored is not asked again"
    file = Path("candidates") / "paraphrases.jsonl"
    assert (killed / file).read_bytes() == (calm / file).read_bytes()
    async with simulator("--batch-seconds", "0.2") as url:
        backend = {"type": "openai", "model": "m", "base_url": f"{url}/v1", "seed": "auto", "max_tokens": 900}
        for run, via in ((calm, "online"), (batch, "batch")):
            write = partial(edgen.candidates, via=via, sample=2, backends={"writer": backend})
            await asyncio.to_thread(write, run, "paraphrases", batch={"poll": "0.2s"}, progress=False)
    assert (batch / file).read_bytes() == (calm / file).read_bytes()


def test_a_selected_run_has_the_texts_of_its_own_conversations_and_nothing_is_asked_again(
    run: Path, tmp_path: Path
) -> None:
    whole = edgen.candidates(run, "paraphrases", progress=False)
    labels = edgen.annotate(run, "quality", unit="conversation", progress=False)
    assert labels.made is not None
    chosen = edgen.select(run, tmp_path / "chosen", draw=4)
    assert (chosen.folder / "candidates" / "paraphrases.jsonl").read_bytes() == whole.file.read_bytes()
    own = edgen.candidates(chosen, "paraphrases", progress=False)
    with RunReader(chosen.folder) as reader:
        there = {one.candidate.id for one in reader.conversations()}
    assert [*own] == [line for line in whole if line.id in there]
    assert own.made is not None
    assert whole.made is not None
    assert own.made.writer.calls.made == whole.made.writer.calls.made
    again = edgen.annotate(chosen, "quality", unit="conversation", progress=False)
    assert again.made is not None
    for status in (own.made.writer, again.made.annotators[0]):
        done = status.written if hasattr(status, "written") else status.labelled
        assert status.planned == done + sum(status.rejected.values()) + sum(status.failed.values())
        assert status.pending == 0

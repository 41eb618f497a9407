"""`edgen.generate` and `edgen.agenerate`: the same run as the command's, wherever they are called."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.core.errors import (
    EdgenError,
    JobError,
    LockedError,
    RunError,
    ShortError,
    UsageError,
)
from tests import ROOT, fork_server
from tests.cli.command import Command
from tests.execution.service import Service, job_text, serve, write

pytestmark = pytest.mark.integration

JOB: dict[str, Any] = {
    "name": "lessons",
    "conversations": 6,
    "space": "education_dialogue",
    "prompt": "education_dialogue",
    "backends": {"default": {"type": "simulator"}},
}


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def shards(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "shards").glob("conversations*"))}


def test_the_run_is_that_of_the_command_to_the_byte(tmp_path: Path, command: Command) -> None:
    job = ROOT / "jobs" / "quickstart.yaml"
    assert command("generate", job, "-n", "8", "-o", tmp_path / "command").code == 0
    run = edgen.generate(job, conversations=8, output=tmp_path / "python")
    assert shards(run.folder) == shards(tmp_path / "command")
    printed = json.loads(command("status", run.folder, "--json").out)
    assert (run.status.accepted, run.status.calls.made) == (printed["accepted"], printed["calls"]["made"])
    again = edgen.generate(job, conversations=8, output=run.folder)
    assert again.status.calls.made == 8  # no call is repeated


def test_a_dict_and_a_job_are_the_same(tmp_path: Path) -> None:
    runs = [
        edgen.generate(job, output=tmp_path / str(number), seed=3)
        for number, job in enumerate((JOB, edgen.Job(**JOB), edgen.Job(**JOB).replace(seed=3)))
    ]
    assert len({json.dumps([one.id + str(one) for one in run]) for run in runs}) == 1


def test_a_dict_that_is_changed_while_it_runs(tmp_path: Path) -> None:
    job: dict[str, Any] = {**JOB, "backends": {"default": {"type": "simulator"}}}

    def change(_event: edgen.Event) -> None:
        job["conversations"] = "many"
        job["backends"]["default"]["type"] = "nothing"

    assert edgen.generate(job, output=tmp_path / "run", on_event=change).status.accepted == 6


def test_a_job_file_that_is_changed_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(JOB))

    def change(_event: edgen.Event) -> None:
        path.write_text("neither a job nor a mapping")

    assert edgen.generate(path, output=tmp_path / "run", on_event=change).status.accepted == 6


async def test_inside_a_running_loop(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    run = edgen.generate(JOB, output=tmp_path / "sync")
    other = await edgen.agenerate(JOB, output=tmp_path / "async")
    assert shards(run.folder) == shards(other.folder)
    assert asyncio.get_running_loop() is loop


def test_after_a_loop_was_closed(tmp_path: Path) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.close()
    try:
        assert edgen.generate(JOB, output=tmp_path / "run").status.state == "complete"
    finally:
        asyncio.set_event_loop(None)


def test_events_come_to_the_caller(tmp_path: Path) -> None:
    heard: list[tuple[str, int]] = []
    edgen.generate(
        JOB,
        output=tmp_path / "run",
        on_event=lambda event: heard.append((event.name, threading.get_ident())),
    )
    names = [name for name, _ in heard]
    assert names[:2] == ["run", "start"]
    assert names[-1] == "finish"
    assert {thread for _, thread in heard} == {threading.get_ident()}


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), ValueError("enough")])
def test_what_interrupts_it_stops_it_cleanly_and_the_same_call_goes_on(
    tmp_path: Path, problem: BaseException
) -> None:
    def stop(event: edgen.Event) -> None:
        if event.name == "start":
            raise problem

    folder = tmp_path / "run"
    with pytest.raises(type(problem)):
        edgen.generate(JOB, conversations=3000, output=folder, on_event=stop)
    stopped = edgen.open(folder).status
    assert stopped.state == "stopped"
    assert stopped.pending > 0
    run = edgen.generate(JOB, conversations=stopped.accepted + 5, output=folder, yes=True)
    assert run.status.state == "complete"


def test_a_listener_that_raises_in_a_loop_stops_it_cleanly_too(tmp_path: Path) -> None:
    def stop(event: edgen.Event) -> None:
        if event.name == "start":
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        asyncio.run(edgen.agenerate(JOB, conversations=3000, output=tmp_path / "run", on_event=stop))
    assert edgen.open(tmp_path / "run").status.state == "stopped"


async def test_a_task_that_is_cancelled_stops_cleanly(tmp_path: Path) -> None:
    async with serve(Service(latency=0.1)) as service:
        path = write(tmp_path / "job.yaml", job_text(service.url, conversations=200, limits={"in_flight": 4}))
        task = asyncio.create_task(edgen.agenerate(path, output=tmp_path / "run"))
        while not service.answered.total():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        status = edgen.open(tmp_path / "run").status
    assert status.state == "stopped"
    assert status.calls.made == service.answered.total() > 0  # every answer is stored


INTERRUPTED = """
import sys, edgen
try:
    edgen.generate(sys.argv[1], output=sys.argv[2], on_event=lambda event: print(event.name, flush=True))
except KeyboardInterrupt:
    print("interrupted", edgen.open(sys.argv[2]).status.state)
"""


async def test_the_stop_button_leaves_a_run_that_goes_on(tmp_path: Path) -> None:
    async with serve(Service(latency=0.02, hold_after=30)) as service:
        path = write(tmp_path / "job.yaml", job_text(service.url, conversations=400, limits={"in_flight": 4}))
        process = await fork_server.start(path, tmp_path / "run", code=INTERRUPTED)
        while service.answered.total() < 30:
            await asyncio.sleep(0.02)
        process.send_signal(signal.SIGINT)
        service.release()
        out, _ = await asyncio.wait_for(process.communicate(), 60)
        assert out.decode().splitlines()[-1] == "interrupted stopped"
        made = service.answered.total()
        run = await edgen.agenerate(path, output=tmp_path / "run")
        assert service.answered.total() == 400
        assert (run.status.calls.made, made < 400) == (400, True)


def test_two_runs_of_one_folder_in_one_process(tmp_path: Path) -> None:
    told: list[str] = []

    def start_another(event: edgen.Event) -> None:
        if event.name == "start":
            with pytest.raises(LockedError, match="this process works on this run already") as caught:
                edgen.generate(JOB, output=tmp_path / "run")
            told.append(str(caught.value))

    slow = {"default": {"type": "simulator", "latency_ms": 1500}}  # longer than the other start takes
    run = edgen.generate(JOB, backends=slow, output=tmp_path / "run", on_event=start_another)
    assert (len(told), run.status.accepted) == (1, 6)


def test_a_run_that_falls_short_raises_and_is_there(tmp_path: Path) -> None:
    refusing = {"default": {"type": "simulator", "faults": "refusal=0.5"}}
    with pytest.raises(ShortError, match="conversations were accepted"):
        edgen.generate(JOB, conversations=20, backends=refusing, asks=1, output=tmp_path / "run")
    status = edgen.open(tmp_path / "run").status
    assert (status.state, status.accepted + sum(status.rejected.values())) == ("short", 20)


def test_what_would_be_lost_is_asked_for(tmp_path: Path) -> None:
    edgen.generate(JOB, output=tmp_path / "run")
    with pytest.raises(UsageError, match="would become 3"):
        edgen.generate(JOB, conversations=3, output=tmp_path / "run")
    assert edgen.open(tmp_path / "run").status.accepted == 6
    run = edgen.generate(JOB, conversations=3, output=tmp_path / "run", yes=True)
    assert run.status.accepted == 3


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"job": 5}, UsageError, "the job is an int; it has to be the path"),
        ({"job": None}, UsageError, "the job is a NoneType"),
        ({"job": "missing.yaml"}, JobError, "there is no such file"),
        ({"conversations": "many"}, JobError, "conversations: expected a whole number"),
        ({"conversations": -1}, JobError, "conversations"),
        ({"seeed": 3}, JobError, "did you mean 'seed'"),
        ({"seed": object()}, UsageError, "seed: this is an object"),
        ({"seed": print}, UsageError, "only a backend can be one"),
        ({"limits": {"in_flight": {3}}}, UsageError, "limits.in_flight: this is a set"),
        ({"backends": "simulator"}, UsageError, "backends: this is a str"),
        ({"output": 3}, UsageError, "output: this is of type int"),
        ({"resume": "always"}, UsageError, "neither 'auto' nor 'never'"),
        ({"via": "post"}, UsageError, "neither 'online' nor 'batch'"),
        ({"scenarios": (0, 3)}, UsageError, "scenarios: this is of type tuple"),
        ({"scenarios": range(0, 6, 2)}, UsageError, "has to go up by 1"),
        ({"scenarios": range(60)}, UsageError, "the job has 6 scenarios"),
        ({"on_event": "print"}, UsageError, "on_event"),
        ({"progress": "yes"}, UsageError, "progress"),
    ],
)
def test_bad_arguments_are_named_in_a_sentence(
    tmp_path: Path, arguments: dict[str, Any], error: type[EdgenError], said: str
) -> None:
    with pytest.raises(error, match=said):
        edgen.generate(**{"job": JOB, "output": tmp_path / "run", **arguments})
    assert not (tmp_path / "run").exists()


def test_resume_never_refuses_a_run(tmp_path: Path) -> None:
    edgen.generate(JOB, output=tmp_path / "run")
    with pytest.raises(UsageError, match="already holds a run"):
        edgen.generate(JOB, output=tmp_path / "run", resume="never")
    with pytest.raises(RunError, match="there is no run here"):
        edgen.open(tmp_path / "other")


class TestFunctions:
    """Backends that are Python functions."""

    @staticmethod
    async def answer(request: edgen.Request) -> str:
        """Return the simulator's answer, as a function backend."""
        from edgen.simulator.text import respond

        return respond(request.messages, seed=request.address.scenario, max_tokens=None).text

    def test_a_function_is_asked_once(self, tmp_path: Path) -> None:
        asked: list[edgen.Request] = []

        async def answer(request: edgen.Request) -> str:
            asked.append(request)
            return await self.answer(request)

        for _ in range(2):
            run = edgen.generate(JOB, backends={"default": answer}, output=tmp_path / "run")
            assert run.status.state == "complete"
            assert len(asked) == 6
        assert next(run.conversations()).provenance["model"].endswith("answer")
        job = edgen.Job(**{**JOB, "backends": {"default": answer}})
        assert edgen.generate(job, output=tmp_path / "run").status.calls.made == 6
        assert len(asked) == 6

    def test_what_a_function_raises_is_no_answer(self, tmp_path: Path) -> None:
        async def fail(_request: edgen.Request) -> str:
            raise ValueError("out of order")

        with pytest.raises(EdgenError, match="out of order"):
            edgen.generate(JOB, backends={"default": fail}, output=tmp_path / "run")
        assert edgen.open(tmp_path / "run").status.accepted == 0

    def test_a_plain_function_answers_too(self, tmp_path: Path) -> None:
        asked = []

        def answer(request: edgen.Request) -> str:
            from edgen.simulator.text import respond

            asked.append(request)
            return respond(request.messages, seed=request.address.scenario, max_tokens=None).text

        run = edgen.generate(JOB, backends={"default": answer}, output=tmp_path / "run")
        assert run.status.accepted == len(asked) == 6

    def test_a_loop_that_is_closed_is_named(self, tmp_path: Path) -> None:
        loop = asyncio.new_event_loop()
        loop.close()

        async def answer(_request: edgen.Request) -> str:
            loop.call_soon(print)
            return ""

        with pytest.raises(EdgenError, match="Event loop is closed"):
            edgen.generate(JOB, backends={"default": answer}, output=tmp_path / "run")

    def test_the_command_says_what_it_lacks(self, tmp_path: Path, command: Command) -> None:
        run = edgen.generate(JOB, backends={"default": self.answer}, output=tmp_path / "run")
        ended = command("generate", run.folder / "job.yaml", "-n", "8", "-o", run.folder)
        assert ended.code == 2
        assert "a Python function" in ended.err

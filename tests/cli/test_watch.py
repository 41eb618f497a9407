"""`--log-format json`, `--metrics`, the lock's messages: the traces that an unattended run leaves."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from edgen.cli.listeners.metrics import Families
from edgen.store.run_folder import RunFolder
from tests.cli.command import Command, Ended
from tests.cli.test_generate import job
from tests.execution.making import begin, execute
from tests.execution.service import Service, edgen, end, error, job_text, serve, start, write

KEY = "sk-secret-0123456789"


def events(err: str) -> list[dict[str, Any]]:
    """Return the events on stderr, each checked for the common fields."""
    found = [json.loads(line) for line in err.splitlines()]
    for event in found:
        assert datetime.fromisoformat(event["time"]).utcoffset() is not None
        assert list(event)[:3] == ["time", "run", "event"]
    assert [event["event"] for event in found].count("end") == 1
    assert found[-1]["event"] == "end"
    return found


def figures(path: Path) -> dict[tuple[str, ...], float]:
    """Return every sample of a metrics file: (name, label values in the order of their names) to value."""
    found = {}
    for family in text_string_to_metric_families(path.read_text()):
        assert family.documentation
        assert family.type in ("gauge", "counter")
        for sample in family.samples:
            assert sample.name.startswith("edgen_")
            assert "run" in sample.labels
            place = (sample.name, *(sample.labels[name] for name in sorted(sample.labels)))
            assert place not in found
            found[place] = sample.value
    return found


# -- the log


def test_the_log_of_a_run(command: Command, tmp_path: Path) -> None:
    for calls in (5, 0):
        ended = command("generate", job(tmp_path), "-o", tmp_path / "run", "--json", "--log-format", "json")
        assert ended.code == 0
        first, *_, last = events(ended.err)
        assert first["event"] == "start"
        assert (first["run"], first["planned"], first["pending"], first["kept"]) == (
            "quickstart",
            5,
            calls,
            5 - calls,
        )
        assert first["pid"] > 0
        assert first["host"]
        assert first["edgen"]
        assert (last["state"], last["exit_code"], last["accepted"], last["pending"]) == ("complete", 0, 5, 0)
        assert last["calls"] == {"made": 5, "replayed": 0, "retried": 0}
        assert last["now"]["calls"]["made"] == calls
        assert last["seconds"] > 0
        assert json.loads(ended.out)["accepted"] == 5


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--set", "bogus=1"), 2),
        (("--set", "asks=1", "--set", "backends={default: {type: simulator, faults: garbage=1}}"), 3),
        (("--until", "2020-01-01T00:00"), 4),
        (("--until", "soon"), 2),
        (("--range", "9:1"), 2),
    ],
)
def test_what_goes_wrong_is_in_the_log_as_well(
    command: Command, tmp_path: Path, arguments: tuple[str, ...], code: int
) -> None:
    ended = command("generate", job(tmp_path), "-o", tmp_path / "run", "--log-format", "json", *arguments)
    assert ended.code == code
    last = events(ended.err)[-1]
    assert last["exit_code"] == code
    assert last["text"]
    assert last["state"] == ("short" if code == 3 else "stopped")


def test_what_others_log_is_a_note(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "one")
    monkeypatch.setenv("GOOGLE_API_KEY", "other")
    monkeypatch.setenv("EDGEN_TRUSTED_HOSTS", "127.0.0.1")
    backend = {"type": "gemini", "model": "m", "base_url": "http://127.0.0.1:9"}
    path = job(tmp_path, backends={"default": backend}, limits={"attempts": 1, "stop_after_failures": 1})
    ended = command("generate", path, "-o", tmp_path / "run", "--log-format", "json")
    assert ended.code == 5
    assert any(
        "are both set" in event.get("text", "") for event in events(ended.err) if event["event"] == "note"
    )


def test_the_log_ends_with_its_command(command: Command, tmp_path: Path) -> None:
    command("generate", job(tmp_path), "-o", tmp_path / "run", "--log-format", "json", "--set", "bogus=1")
    ended = command("generate", job(tmp_path), "-o", tmp_path / "run", "--set", "bogus=1")
    assert ended.err.startswith("edgen: job")


def test_the_log_of_arms_says_which(command: Command, tmp_path: Path) -> None:
    path = job(tmp_path, arms={"one": {"asks": 2}, "two": {"asks": 4}})
    metrics = tmp_path / "edgen.prom"
    ended = command("generate", path, "-o", tmp_path / "run", "--log-format", "json", "--metrics", metrics)
    assert ended.code == 0
    found = events(ended.err)
    assert [event["arm"] for event in found if event["event"] == "start"] == ["one", "two"]
    assert {event["run"] for event in found} == {"quickstart"}
    assert found[-1]["arms"]["two"]["accepted"] == 5
    assert figures(metrics)["edgen_conversations", "two", "accepted", "quickstart"] == 5
    assert figures(metrics)["edgen_run_state", "quickstart", "complete"] == 1


async def test_pauses_and_retries_are_told_and_nothing_of_what_is_said(tmp_path: Path) -> None:
    closed_until = 0.0

    async def trouble(service: Service, _seed: int) -> web.StreamResponse | None:
        nonlocal closed_until
        if service.answered.total() >= 40 and closed_until == 0.0:
            closed_until = time.monotonic() + 1.5
        return error(429, "too many", **{"Retry-After": "2"}) if time.monotonic() < closed_until else None

    async with serve(Service(latency=0.02, trouble=trouble)) as service:
        path = write(
            tmp_path / "job.yaml", job_text(service.url, conversations=150, limits={"in_flight": 16})
        )
        metrics = tmp_path / "edgen.prom"
        ended = await edgen(
            "generate", path, "-o", tmp_path / "run", "--log-format", "json", "--metrics", metrics
        )
    assert ended.code == 0, ended.err
    found = events(ended.err)
    names = [event["event"] for event in found]
    assert (
        names.index("start")
        < names.index("circuit_opened")
        < names.index("circuit_closed")
        < names.index("end")
    )
    opened = found[names.index("circuit_opened")]
    assert 0 < opened["seconds"] <= 2
    retries = [event for event in found if event["event"] == "retries"]
    assert sum(event["rate_limit"] for event in retries) == found[-1]["calls"]["retried"] > 0
    times = [datetime.fromisoformat(e["time"]).timestamp() for e in found if e["event"] == "rate"]
    assert all(later - sooner > 0.9 for sooner, later in itertools.pairwise(times[:-1]))
    assert "Simulate" not in ended.err  # text of the prompt
    assert "Student" not in ended.err
    told = figures(metrics)
    assert told["edgen_retries_total", "rate_limit", "t"] == found[-1]["calls"]["retried"]
    assert 1 < told["edgen_paused_seconds_total", "t"] < 5


async def test_a_service_that_refuses_the_key_ends_the_log_without_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("EDGEN_TRUSTED_HOSTS", "127.0.0.1")

    async def trouble(_service: Service, _seed: int) -> web.StreamResponse:
        return error(401, f"wrong key {KEY} \x1b[31m")

    async with serve(Service(trouble=trouble)) as service:
        path = write(tmp_path / "job.yaml", job_text(service.url))
        ended = await edgen("generate", path, "-o", tmp_path / "run", "--log-format", "json")
    assert ended.code == 5
    assert events(ended.err)[-1]["exit_code"] == 5
    assert KEY not in ended.err
    assert "\x1b" not in ended.err


@pytest.mark.crash
async def test_a_signal_is_an_end_too(tmp_path: Path) -> None:
    async with serve(Service(latency=0.2)) as service:
        path = write(tmp_path / "job.yaml", job_text(service.url, limits={"in_flight": 4}))
        process = await start("generate", path, "-o", tmp_path / "run", "--log-format", "json")
        while not service.answered.total():
            await asyncio.sleep(0.02)
        process.terminate()
        ended = await end(process)
    assert ended.code == 143
    last = events(ended.err)[-1]
    assert (last["exit_code"], last["state"]) == (143, "stopped")


async def test_a_batch_is_told_step_by_step_and_its_deadline_loses_nothing(tmp_path: Path) -> None:
    server = await start("simulator", "--port", "0", "--batch-seconds", "300")
    assert server.stderr is not None
    url = re.search(r"http://\S+/v1", (await server.stderr.readline()).decode())
    assert url is not None
    backend = {"type": "openai", "model": "m", "base_url": url[0], "max_tokens": 1000}
    limits = {"max_tokens": 100_000}
    path = write(
        tmp_path / "job.yaml",
        job_text("", conversations=6, backends={"default": backend}, batch={"poll": "1s"}, limits=limits),
    )
    metrics, sent = tmp_path / "edgen.prom", ""
    generate = ("generate", path, "-o", tmp_path / "run", "--via", "batch", "--log-format", "json")
    for _ in range(2):
        process = await start(*generate, "--metrics", metrics)
        assert process.stderr is not None
        err = b""
        while b"0 of 6 answered" not in err:
            line = await process.stderr.readline()
            assert line, err
            err += line
        facts = (await edgen("status", tmp_path / "run", "--json")).facts
        assert (facts["state"], facts["batches"][0]["requests"]) == ("running", 6)
        process.terminate()
        ended = await end(process)
        assert ended.code == 143
        found = events((err + ended.err.encode()).decode())
        batch = next(event for event in found if event["event"] == "batch" and event["id"])
        assert (batch["number"], batch["requests"]) == (1, 6)
        assert batch["id"] == (sent or batch["id"])  # the second start waits for the same batch
        sent = batch["id"]
        assert "waiting for" not in ended.err  # no process waits for a batch
    told = figures(metrics)
    assert told["edgen_batch_requests_out", "t"] == 6
    assert told["edgen_batches_out", "t"] == 1
    assert 0 < told["edgen_budget_left_tokens", "t"] < 100_000 - 6 * 1000
    server.terminate()
    await end(server)


# -- the metrics file


def test_the_metrics_of_a_run(command: Command, tmp_path: Path) -> None:
    backends = {"default": {"type": "simulator", "max_tokens": 2000}}
    path, metrics = (
        job(tmp_path, backends=backends, limits={"max_tokens": 1_000_000}),
        tmp_path / "edgen.prom",
    )
    started = time.time()
    ended = command("generate", path, "-o", tmp_path / "run", "--json", "--metrics", metrics)
    assert ended.code == 0
    facts, told = json.loads(ended.out), figures(metrics)
    assert told["edgen_conversations", "accepted", "quickstart"] == 5
    assert told["edgen_conversations", "pending", "quickstart"] == 0
    assert told["edgen_planned", "quickstart"] == 5
    assert told["edgen_calls_total", "quickstart"] == facts["calls"]["made"]
    assert told["edgen_tokens_total", "prompt", "quickstart"] == facts["tokens"]["prompt"]
    assert told["edgen_tokens_total", "completion", "quickstart"] == facts["tokens"]["completion"]
    used = sum(facts["tokens"].values())
    assert told["edgen_budget_left_tokens", "quickstart"] == 1_000_000 - used
    assert told["edgen_exit_code", "quickstart"] == 0
    assert told["edgen_run_state", "quickstart", "complete"] == 1
    assert told["edgen_run_state", "quickstart", "running"] == 0
    assert started <= told["edgen_start_time_seconds", "quickstart"] <= time.time()
    success = told["edgen_last_success_time_seconds", "quickstart"]
    assert started <= success <= time.time()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []

    # Counters include earlier starts, and the last success stays until the next one.
    ended = command("generate", path, "-n", "8", "-o", tmp_path / "run", "--metrics", metrics, "--until", "x")
    assert ended.code == 2
    assert figures(metrics)["edgen_last_success_time_seconds", "quickstart"] == pytest.approx(success)
    assert command("generate", path, "-n", "8", "-o", tmp_path / "run", "--metrics", metrics).code == 0
    assert figures(metrics)["edgen_calls_total", "quickstart"] == 8
    assert figures(metrics)["edgen_last_success_time_seconds", "quickstart"] > success


async def test_the_metrics_of_a_run_in_progress(tmp_path: Path) -> None:
    metrics = tmp_path / "edgen.prom"
    async with serve(Service(hold_after=0)) as service:
        path = write(tmp_path / "job.yaml", job_text(service.url, limits={"in_flight": 4}))
        process = await start("generate", path, "-o", tmp_path / "run", "--metrics", metrics)
        while not metrics.exists():
            assert process.returncode is None
            await asyncio.sleep(0.01)
        told = figures(metrics)  # complete at every moment
        other = await edgen("generate", path, "-o", tmp_path / "run", "--metrics", metrics)
        assert other.code == 6
        assert re.search(rf"process {process.pid} on \S+\)", other.err)
        process.kill()
        await end(process)
    assert told["edgen_run_state", "t", "running"] == 1
    assert ("edgen_exit_code", "t") not in told
    assert told["edgen_window", "default", "t"] == 4
    # The process that found the run locked did not touch the owner's file.
    assert figures(metrics)["edgen_run_state", "t", "running"] == 1


@pytest.mark.parametrize("name", ["job.yaml", ".", "missing/edgen.prom", "run"])
def test_a_metrics_file_that_cannot_be_is_refused_at_the_start(
    command: Command, tmp_path: Path, name: str
) -> None:
    path = job(tmp_path)
    before = path.read_text()
    (tmp_path / "run").symlink_to("/dev/null")
    ended = command("generate", path, "-o", tmp_path / "made", "--metrics", tmp_path / name)
    assert ended.code == 2
    assert "--metrics" in ended.err
    assert not (tmp_path / "made").exists()
    assert path.read_text() == before


def test_a_metrics_file_that_goes_away_is_a_note(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "figures"
    folder.mkdir()
    backends = {"default": {"type": "simulator", "latency_ms": 200}}
    path = job(tmp_path, conversations=40, backends=backends, limits={"in_flight": 8})

    def remove() -> None:
        while not (folder / "edgen.prom").exists():
            time.sleep(0.01)
        (folder / "edgen.prom").unlink()
        folder.rmdir()

    import threading

    remover = threading.Thread(target=remove)
    remover.start()
    ended = command("generate", path, "-o", tmp_path / "run", "--metrics", folder / "edgen.prom")
    remover.join()
    assert ended.code == 0
    assert "metrics file cannot be written" in ended.err


def test_labels_are_escaped() -> None:
    families = Families()
    odd = 'a"b\\c\nd'
    families.add("edgen_x", "With \\ and\nmore.", 1.5, {"run": odd})
    (family,) = text_string_to_metric_families(families.render_text())
    assert family.samples[0].labels == {"run": odd}
    assert family.samples[0].value == 1.5


# -- the lock


def kept(folder: Path) -> dict[str, int]:
    return {
        str(p): p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file() and p.parent.name == "shards"
    }


def test_a_finished_run_is_left_as_it_is(command: Command, tmp_path: Path) -> None:
    assert command("generate", job(tmp_path), "-o", tmp_path / "run").code == 0
    before = kept(tmp_path / "run")
    assert before
    ended: Ended = command("generate", job(tmp_path), "-o", tmp_path / "run")
    assert ended.code == 0
    assert "was killed or crashed" not in ended.err
    assert kept(tmp_path / "run") == before


def test_a_finished_run_needs_no_key(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    price = {"prompt": 1, "completion": 1}
    backend = {"type": "openai", "model": "m", "base_url": "https://api.example/v1", "api_key_env": "MY_KEY"}
    path = job(tmp_path, backends={"default": {**backend, "price": price}})
    run = tmp_path / "run"
    ended = command("generate", path, "-o", run)
    assert (ended.code, run.exists()) == (5, False)
    monkeypatch.setenv("MY_KEY", "sk-x")
    asyncio.run(_answer_all(path, run))
    assert command("status", run, "--json").out.count('"complete"') == 1
    monkeypatch.delenv("MY_KEY")
    before = kept(run)
    ended = command("generate", path, "-o", run, "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["calls"]["now"] == 0
    assert kept(run) == before
    # A start that needs requests does need the key, and it changes nothing.
    for more in (("-n", "6"), ("--set", "asks=2"), ("--set", "backends.default.temperature=1")):
        ended = command("generate", path, "-o", run, *more)
        assert ended.code == 5
        assert "MY_KEY" in ended.err
        assert kept(run) == before


async def _answer_all(path: Path, folder: Path) -> None:
    """Make a job's run with the simulator's answers in place of its service's."""
    from edgen.planning.load import load_plans
    from edgen.runtime.backends import list_configs, open_backends
    from edgen.runtime.control import Trust
    from edgen.simulator.text import respond
    from edgen.store.ledger import Ledger

    class Answering:
        def __init__(self, backend: Any) -> None:
            self.identity, self.model = backend.identity, backend.model

        async def complete(self, request: Any) -> Any:
            return respond(request.messages, seed=request.address.scenario, max_tokens=None)

    _, plans = load_plans(path, [])
    rundir = RunFolder(folder)
    rundir.prepare()
    plan, trust = plans[""], Trust(["api.example"])
    async with (
        open_backends(list_configs(plan), plan.job.limits, trust) as made,
        Ledger(rundir.ledger) as ledger,
    ):
        backends: Any = {name: Answering(backend) for name, backend in made.items()}
        await execute(begin(plan, backends, rundir, ledger))


@pytest.mark.crash
async def test_a_dead_holder_is_taken_over_with_a_note(tmp_path: Path) -> None:
    async with serve(Service(latency=0.1)) as service:
        path = write(tmp_path / "job.yaml", job_text(service.url, conversations=40, limits={"in_flight": 8}))
        process = await start("generate", path, "-o", tmp_path / "run")
        while not service.answered.total():
            await asyncio.sleep(0.02)
        process.kill()
        await end(process)
        ended = await edgen("generate", path, "-o", tmp_path / "run")
        assert ended.code == 0, ended.err
        assert f"process {process.pid} on " in ended.err
        assert "was killed or crashed; its run is resumed." in ended.err
        again = await edgen("generate", path, "-o", tmp_path / "run")
        assert "was killed or crashed" not in again.err


def test_who_lets_go_takes_its_name_off(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    with run.lock_for_writing() as dead:
        assert dead is None
        assert '"pid"' in run.lock.read_text()
    assert run.lock.read_text() == ""
    run.lock.write_text(
        '{"pid": 7, "host": "elsewhere"}'
    )  # as an older edgen left it, which did not remove the name
    with run.lock_for_writing() as dead:
        assert dead is None
    run.lock.write_text('{"pid": 7, "host": "elsewhere", "since": 1.0}')
    with run.lock_for_writing() as dead:
        assert dead == "process 7 on elsewhere"


# -- the name


def test_a_name_with_todays_date(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = job(tmp_path, name="nightly-{date}")
    days = {datetime.now().astimezone().date().isoformat()}
    assert command("generate", path).code == 0
    days.add(datetime.now().astimezone().date().isoformat())
    (made,) = (tmp_path / "outputs").iterdir()
    assert made.name in {f"nightly-{day}" for day in days}
    # The run keeps its name on any day.
    assert f"name: {made.name}\n" in (made / "job.yaml").read_text()
    ended = command("generate", made / "job.yaml", "--json")
    assert json.loads(ended.out)["calls"]["now"] == 0


@pytest.mark.parametrize(
    ("name", "told"), [("x-{time}", "{date}"), ("x-{", "{date}"), ("x-{DATE}", "{date}")]
)
def test_other_braces_are_refused(command: Command, tmp_path: Path, name: str, told: str) -> None:
    ended = command("preview", job(tmp_path, name=name))
    assert ended.code == 2
    assert told in ended.err


def test_braces_that_yaml_takes_for_its_own(command: Command, tmp_path: Path) -> None:
    ended = command("preview", job(tmp_path), "--set", "name={date}")
    assert ended.code == 2
    assert "quotes" in ended.err

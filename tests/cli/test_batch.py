"""`edgen batch list

cancel

read`, --write-only and failures of batches, with real processes and servers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from edgen.core.errors import RunError
from edgen.core.files import choose_temporary_name
from edgen.store.ledger import NotedBatch, read_batches_at
from tests import ROOT, fork_server
from tests.execution.batch.test_batch_kill import SHAPES, simulator, tokens, write_job
from tests.execution.service import edgen, end, files, start

SLOW = ("--batch-seconds", "600")
TALKS = SHAPES["selfplay"]["conversations"]


def _batches(ledger: Path) -> list[NotedBatch]:
    """Return the batches of a ledger; none while the ledger is being created."""
    with contextlib.suppress(RunError):
        return read_batches_at(ledger)
    return []


async def begun(folder: Path, job: Path) -> None:
    """Start the job by batch, and end the process once its batch is sent."""
    process = await start("generate", job, "-o", folder, "--via", "batch")
    async with asyncio.timeout(120):
        while not any(batch.state == "sent" for batch in _batches(folder / "run.db")):
            await asyncio.sleep(0.05)
    process.terminate()
    assert (await end(process)).code == 143


def answered_by(url: str) -> int:
    """Return how many requests of the provider's batches are answered."""
    asked = urllib.request.Request(f"{url}/v1/batches", headers={"Authorization": "Bearer k"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return sum(batch["request_counts"]["completed"] for batch in json.loads(answer.read())["data"])


async def test_listed_and_cancelled_with_its_partial_answers_kept(tmp_path: Path) -> None:
    async with simulator("--batch-seconds", "96") as url:  # an answer every four seconds
        job, folder = write_job(tmp_path / "job.yaml", "openai", url, "oneshot"), tmp_path / "run"
        await begun(folder, job)
        listed = await edgen("batch", "list", folder, "--json")
        assert [(row["number"], row["state"], row["requests"]) for row in listed.facts["batches"]] == [
            (1, "sent", 24)
        ]
        refused = await edgen("generate", job, "-o", folder)
        assert refused.code == 2
        assert "edgen batch cancel" in refused.err
        while not await asyncio.to_thread(answered_by, url):
            await asyncio.sleep(0.2)
        missing = await edgen("batch", "cancel", folder, "7")
        assert (missing.code, "batch 7" in missing.err) == (2, True)
        cancelled = await edgen("batch", "cancel", folder, "--json")
        assert cancelled.code == 0, cancelled.err
        kept = cancelled.facts["answered"]
        assert 0 < kept < 24
        online = await edgen("generate", job, "-o", folder, "--json")
        assert online.facts["calls"]["now"] == 24 - kept
        calm = await edgen("generate", job, "-o", tmp_path / "calm", "--json")
        assert online.code == calm.code == 0
        again = await edgen("batch", "cancel", folder)
        assert "This run has no open batch" in again.out
    assert files(folder) == files(tmp_path / "calm")
    assert "cancelled" in (await edgen("batch", "list", folder)).out


@pytest.mark.parametrize("kind", ["openai", "gemini"])
async def test_what_an_expired_batch_left_goes_into_the_next_round(tmp_path: Path, kind: str) -> None:
    changes = {
        "batch": {"poll": "0.2s", "max_requests": 12} | ({"online_after": "6s"} if kind == "openai" else {})
    }
    async with simulator("--batch-seconds", "1", "--batch-window", "0.6") as url:
        job, folder = write_job(tmp_path / "job.yaml", kind, url, "oneshot", **changes), tmp_path / "run"
        ended = await edgen("generate", job, "-o", folder, "--via", "batch", "--json")
        calm = await edgen("generate", job, "-o", tmp_path / "calm", "--json")
        assert len(tokens(kind, url)) == len(read_batches_at(folder / "run.db"))
    assert sum(batch.message == "expired" for batch in read_batches_at(folder / "run.db")) >= 2
    if kind == "gemini":  # an expired batch of Gemini's leaves no answers, so this cannot succeed
        assert ended.code == 5
        assert "without any answer" in ended.err
        return
    assert ended.code == calm.code, ended.err
    assert files(folder) == files(tmp_path / "calm")
    assert {batch.message for batch in read_batches_at(folder / "run.db")} >= {"expired"}


async def test_after_a_while_the_rest_is_asked_online(tmp_path: Path) -> None:
    async with simulator("--batch-seconds", "20") as url:
        job, folder = write_job(tmp_path / "job.yaml", "openai", url, "selfplay"), tmp_path / "run"
        option = "batch={poll: 0.2s, online_after: 3s}"
        ended = await edgen("generate", job, "-o", folder, "--via", "batch", "--json", "--set", option)
        calm = await edgen("generate", job, "-o", tmp_path / "calm", "--json", "--set", option)
    assert ended.code == calm.code == 0, ended.err
    assert files(folder) == files(tmp_path / "calm")
    assert ended.facts["calls"]["made"] == calm.facts["calls"]["made"]
    assert "generated online" in ended.err
    assert [batch.message for batch in read_batches_at(folder / "run.db")] == ["cancelled"]


@pytest.mark.parametrize("kind", ["openai", "gemini"])
async def test_a_create_whose_answer_is_lost_makes_one_batch(tmp_path: Path, kind: str) -> None:
    async with simulator("--batch-seconds", "0", "--faults", "batch_create_lost=1,batch_503=0.2") as url:
        job, folder = write_job(tmp_path / "job.yaml", kind, url, "oneshot"), tmp_path / "run"
        ended = await edgen("generate", job, "-o", folder, "--via", "batch", "--json")
        assert ended.code == 0, ended.err
        assert len(tokens(kind, url)) == 1


async def test_lines_that_fail_are_tried_again(tmp_path: Path) -> None:
    async with simulator("--batch-seconds", "0", "--faults", "429=0.2,500=0.2") as url:
        job, folder = write_job(tmp_path / "job.yaml", "openai", url, "oneshot"), tmp_path / "run"
        ended = await edgen("generate", job, "-o", folder, "--via", "batch", "--json")
    assert ended.code == 0, ended.err
    assert ended.facts["calls"]["made"] == 24
    assert ended.facts["calls"]["retried"] > 0


async def _refuses_to_send_a_key_elsewhere(folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that batches of an untrusted run are cancelled only at hosts that may get the key."""
    own, digests = (folder / "job.yaml").read_text(), (folder / "digests.json").read_bytes()
    (folder / "digests.json").unlink()  # as an attacker can
    (folder / "job.yaml").write_text(own.replace(url, "https://elsewhere"))
    with monkeypatch.context() as here:
        here.setenv("OPENAI_API_KEY", "sk-of-this-machine")
        refused = await edgen("batch", "cancel", folder)
    assert (refused.code, "the key in OPENAI_API_KEY sent to elsewhere" in refused.err) == (2, True), (
        refused.err
    )
    (folder / "job.yaml").write_text(own)
    (folder / "digests.json").write_bytes(digests)


async def test_a_batch_gone_at_the_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    async with simulator(*SLOW) as url:
        job = write_job(tmp_path / "job.yaml", "openai", url, "oneshot")
        await begun(folder, job)
    await _refuses_to_send_a_key_elsewhere(folder, url, monkeypatch)
    async with simulator(
        "--batch-seconds", "0", "--port", url.rpartition(":")[2]
    ):  # another server, which does not know the batch
        lost = await edgen("generate", job, "-o", folder, "--via", "batch")
        assert lost.code == 5
        assert "not at the provider" in lost.err
        assert "edgen batch cancel" in lost.err
        given_up = await edgen("batch", "cancel", folder)
        assert given_up.code == 0, given_up.err
        ended = await edgen("generate", job, "-o", folder, "--via", "batch", "--json")
        assert (ended.code, ended.facts["accepted"]) == (0, 24)


FOUR_ROUNDS = {"max_turns": 3, "closing": "student"}


def job_for_files(tmp_path: Path, kind: str = "openai") -> Path:
    """Write a job of four rounds."""
    return write_job(tmp_path / "job.yaml", kind, "http://127.0.0.1:9", "selfplay", selfplay=FOUR_ROUNDS)


async def answer(requests: Path, results: Path, kind: str, url: str) -> None:
    """Answer a request file as a provider or `vllm run-batch` does: each line is generated online."""
    import aiohttp

    said = []
    async with aiohttp.ClientSession() as session:
        for line in requests.read_text().splitlines():
            asked: dict[str, Any] = json.loads(line)
            if kind == "openai":
                async with session.post(url + asked["url"], json=asked["body"]) as got:
                    response = {"status_code": got.status, "request_id": "r", "body": await got.json()}
                said.append({"id": "b", "custom_id": asked["custom_id"], "response": response, "error": None})
            else:
                path = "/v1beta/models/gemini-m:generateContent"
                async with session.post(url + path, json=asked["request"]) as got:
                    said.append({"key": asked["key"], "response": await got.json()})
    results.write_text("".join(json.dumps(each) + "\n" for each in reversed(said)))


@pytest.mark.parametrize("kind", ["openai", pytest.param("gemini", marks=pytest.mark.only_long)])
async def test_written_files_answered_elsewhere_make_the_same_run(tmp_path: Path, kind: str) -> None:
    job, folder, out = job_for_files(tmp_path, kind), tmp_path / "run", tmp_path / "out"
    async with simulator() as url:
        for turn in range(10):
            wrote = await edgen(
                "generate", job, "-o", folder, "--via", "batch", "--write-only", out, "--json"
            )
            assert wrote.code in (0, 3), wrote.err
            if wrote.facts["pending"] == 0:
                break
            (requests,) = [
                path for path in out.iterdir() if "results" not in path.name and "done" not in path.name
            ]
            results = out / f"results-{turn}.jsonl"
            await answer(requests, results, kind, url)
            requests.rename(out / f"done-{turn}.jsonl")
            read = await edgen("batch", "read", folder, results, "--json")
            assert read.code == 0, read.err
            assert read.facts["out"] == 0
            twice = await edgen("batch", "read", folder, results, "--json")
            assert twice.facts["files"][0]["known"] == read.facts["files"][0]["answered"]
        else:
            raise AssertionError("it never came to an end")
        # The same job online: only the address differs, and no record contains it.
        online = write_job(tmp_path / "online.yaml", kind, url, "selfplay", selfplay=FOUR_ROUNDS)
        calm = await edgen("generate", online, "-o", tmp_path / "calm", "--json")
    assert calm.code == wrote.code
    shards = {name: text for name, text in files(folder).items() if name != "manifest.json"}
    assert shards == {
        name: text for name, text in files(tmp_path / "calm").items() if name != "manifest.json"
    }


async def test_a_request_that_can_never_succeed_fails_as_it_does_online(tmp_path: Path) -> None:
    job, folder, out = job_for_files(tmp_path), tmp_path / "run", tmp_path / "out"
    command = ("generate", job, "-o", folder, "--via", "batch", "--write-only", out, "--json")
    async with simulator() as url:
        for turn in range(10):
            wrote = await edgen(*command)
            if wrote.facts["pending"] == 0:
                break
            (requests,) = out.glob("edgen-*")
            results = tmp_path / f"results-{turn}.jsonl"
            await answer(requests, results, "openai", url)
            lines = [json.loads(line) for line in results.read_text().splitlines()]
            for line in lines:
                if line["custom_id"].startswith("2-"):
                    error = {
                        "message": "This model's maximum context length is 1 token",
                        "code": "context_length_exceeded",
                    }
                    line["response"] = {"status_code": 400, "request_id": "r", "body": {"error": error}}
            results.write_text("".join(json.dumps(line) + "\n" for line in lines))
            requests.unlink()
            assert (await edgen("batch", "read", folder, results)).code == 0
            again = await edgen("batch", "read", folder, results, "--json")
            assert (again.code, again.facts["files"][0]["strangers"]) == (0, 0)
    assert wrote.code == 3
    assert wrote.facts["failed"] == {"context_overflow": 1}
    assert wrote.facts["accepted"] == TALKS - 1
    assert files(folder)


async def test_files_that_answer_nothing_of_this_run(tmp_path: Path) -> None:
    job, folder, out = job_for_files(tmp_path), tmp_path / "run", tmp_path / "out"
    out.mkdir()
    killed = choose_temporary_name(out / "edgen-t-0123456789abcdef.default.jsonl")  # left by a killed start
    killed.touch()
    none = await edgen("batch", "read", folder, job)
    assert none.code == 2
    wrote = await edgen("generate", job, "-o", folder, "--via", "batch", "--write-only", out)
    assert (wrote.code, f"{TALKS} requests are written" in wrote.err) == (0, True), wrote.err
    assert not killed.exists()
    (requests,) = out.iterdir()
    itself = await edgen("batch", "read", folder, requests)
    assert (itself.code, "request file" in itself.err) == (2, True), itself.err
    other = tmp_path / "other.jsonl"
    other.write_text('{"custom_id": "x-1", "response": {"status_code": 200, "body": {}}, "error": null}\n')
    foreign = await edgen("batch", "read", folder, other)
    assert (foreign.code, "another run" in foreign.err) == (2, True), foreign.err
    assert (await edgen("batch", "read", folder, tmp_path / "nothing.jsonl")).code == 2
    async with simulator() as url:
        await answer(requests, other, "openai", url)
    with other.open("ab") as file:
        file.write(b'{"custom_id": "0-0-0-' + b"0" * 32 + b'", "response": null, "error": {"code": "x"}}\n')
    mixed = await edgen("batch", "read", folder, other, "--json")
    assert mixed.code == 3
    assert mixed.facts["files"][0]["answered"] == TALKS
    assert mixed.facts["files"][0]["strangers"] == 1
    gone = await edgen("generate", job, "-o", folder, "--via", "batch", "--write-only", out, "--json")
    assert gone.facts["calls"]["made"] == TALKS


def limited(size: int, *arguments: str | Path) -> asyncio.Future[Any]:
    """Run `edgen` with a limit on file sizes: its writes fail as on a full disk."""

    async def run() -> Any:
        return await end(await fork_server.start(*arguments, limits={resource.RLIMIT_FSIZE: size}))

    return asyncio.ensure_future(run())


async def test_a_disk_that_fills_while_results_are_downloaded(tmp_path: Path) -> None:
    async with simulator("--batch-seconds", "0") as url:
        shape = {"conversations": 300, "forms": "prose"}
        job = write_job(tmp_path / "job.yaml", "openai", url, "oneshot", **shape)
        folder = tmp_path / "run"
        # The results take 543 kB. The ledger's log takes 400 kB and a page more for each commit; a busy
        # machine makes
        # more commits.
        full = await limited(500_000, "generate", job, "-o", folder, "--via", "batch")
        assert full.code == 4, full.err
        assert "the disk is full" in full.err
        (batch,) = read_batches_at(folder / "run.db")
        assert batch.state == "sent"
        assert not list((folder / "run.batches").glob("*.results-*"))
        ended = await edgen("generate", job, "-o", folder, "--via", "batch", "--json")
        assert ended.code == 0, ended.err
        assert len(tokens("openai", url)) == 1


async def test_what_has_no_batch_service_says_what_to_do(tmp_path: Path) -> None:
    embedded = await edgen(
        "generate", ROOT / "jobs" / "quickstart.yaml", "-o", tmp_path / "run", "--via", "batch"
    )
    assert embedded.code == 2
    assert "edgen simulator" in embedded.err
    assert not (tmp_path / "run").exists()
    odd = await edgen("generate", ROOT / "jobs" / "quickstart.yaml", "--write-only", tmp_path / "out")
    assert (odd.code, "--via batch" in odd.err) == (2, True)


async def test_judges_and_arms_go_by_batch_too(tmp_path: Path) -> None:
    async with simulator("--batch-seconds", "0") as url:
        shape = {"replicates": 2, "conversations": 6, "arms": {"a": {"asks": 2}, "b": {"asks": 3}}}
        shape |= {"pairs": {"logprobs": 5}}
        job, folder = write_job(tmp_path / "job.yaml", "openai", url, "oneshot", **shape), tmp_path / "run"
        made = await edgen("generate", job, "-o", folder, "--via", "batch", "--json")
        assert made.code in (0, 3), made.err
        judged = await edgen("pairs", folder, "--by", "oracle", "--via", "batch", "--json")
        assert judged.code in (0, 3), judged.err
        assert judged.facts["judged"] > 0
        listed = await edgen("batch", "list", folder, "--json")
        whose = {row["of"].split()[0] for row in listed.facts["batches"]}
        assert whose == {"a", "b", "judge"}
        calm = tmp_path / "calm"
        assert (await edgen("generate", job, "-o", calm)).code == made.code
        online = await edgen("pairs", calm, "--by", "oracle", "--json")
        assert online.facts["pairs"] == judged.facts["pairs"]
    assert (folder / "pairs" / "pairs.jsonl").read_bytes().count(b'"logprobs":{"p_ab":0.') >= 20
    assert (folder / "pairs" / "pairs.jsonl").read_bytes() == (calm / "pairs" / "pairs.jsonl").read_bytes()
    for arm in ("a", "b"):
        assert files(folder / "arms" / arm) == files(calm / "arms" / arm)


async def test_rollouts_go_by_batch_too(tmp_path: Path) -> None:
    rollouts = ("--by", "probability", "--credit", "rollouts", "--rollouts", "1", "--json")
    async with simulator("--batch-seconds", "0") as url:
        shape = {"replicates": 2, "conversations": 3, "branch": {"at": "sampled"}}
        shape["selfplay"] = {"max_turns": 6, "closing": "student"}
        job, folder = write_job(tmp_path / "job.yaml", "openai", url, "selfplay", **shape), tmp_path / "run"
        calm = tmp_path / "calm"
        for run in (folder, calm):
            made = await edgen("generate", job, "-o", run)
            assert made.code in (0, 3), made.err
        paired = await edgen("pairs", folder, *rollouts, "--via", "batch")
        assert paired.code in (0, 3), paired.err
        listed = await edgen("batch", "list", folder, "--json")
        assert {row["of"].split()[0] for row in listed.facts["batches"]} == {"rollouts"}
        online = await edgen("pairs", calm, *rollouts)
        assert online.facts["pairs"] == paired.facts["pairs"]
    assert (folder / "pairs" / "pairs.jsonl").read_bytes() == (calm / "pairs" / "pairs.jsonl").read_bytes()

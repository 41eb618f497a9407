"""Several annotators at once: one budget, one service's limits, and the same bytes as undisturbed."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

import edgen
from edgen.api.status import read_status
from edgen.store.ledger import read_batches_at
from tests.execution.batch.test_batch_kill import simulator
from tests.execution.service import Service, end, serve, start
from tests.execution.service import edgen as run_edgen

pytestmark = pytest.mark.crash

JOB = {
    "name": "t", "seed": 3, "conversations": 6, "space": "education_dialogue",
    "prompt": "education_dialogue", "backends": {"default": {"type": "simulator", "max_tokens": 3000}},
}  # fmt: skip
LABELS = Path("layers") / "teacher_moves"
IN_FLIGHT = 6


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return edgen.generate(JOB, output=tmp_path_factory.mktemp("made") / "run", progress=False).folder


class Crowd:
    """A service that counts the requests in flight at once."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def __call__(self, service: Service, seed: int) -> web.StreamResponse | None:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.002)
        self.now -= 1
        return None


def equal(one: dict[str, Any]) -> bool:
    ended = one["labelled"] + sum(one["rejected"].values()) + sum(one["failed"].values())
    return bool(one["planned"] == ended + one["pending"])


async def until_asked(service: Service, many: int) -> None:
    async with asyncio.timeout(30):
        while service.asked.total() < many:
            await asyncio.sleep(0.01)


async def test_whatever_stops_one_stops_all_and_nothing_is_lost(made: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(made, tmp_path / "run"))
    calm = edgen.annotate(shutil.copytree(made, tmp_path / "calm"), "teacher_moves", progress=False)
    (one,) = calm.made.annotators if calm.made else ()
    crowd = Crowd()
    service = Service(trouble=crowd)
    async with serve(service):
        backend = {"type": "openai", "model": "m", "base_url": service.url, "seed": "auto", "max_tokens": 100}
        said = (
            run, "--labels", "teacher_moves", "--annotators", "3", "--set", f"limits.in_flight={IN_FLIGHT}",
            "--set", f"backends.annotator={json.dumps(backend)}", "--json",
        )  # fmt: skip

        async def stopped(number: int) -> Any:
            """Return the annotators' status after some more answers and a signal."""
            service.hold_after = service.asked.total() + IN_FLIGHT
            service.released.clear()
            process = await start("annotate", *said)
            await until_asked(service, service.hold_after + 1)
            process.send_signal(number)
            await asyncio.sleep(0.1)
            service.release()
            service.hold_after = None
            ended = await end(process)
            if number != signal.SIGKILL:
                assert ended.code == 128 + number, ended.err
            return [msgspec.to_builtins(one) for one in read_status(run).annotators or ()]

        budget = 9_000  # of about 35,000, at which all requests together are charged
        short = await run_edgen("annotate", *said, "--set", f"limits.max_tokens={budget}")
        assert short.code == 4, short.err
        assert "the token budget is used up" in " ".join(short.err.split())
        assert short.facts["units"] is None, "no layer of half of the answers"
        signals = (signal.SIGTERM, signal.SIGKILL, signal.SIGINT)
        stops = [short.facts["annotators"], *[await stopped(number) for number in signals]]
        spent = sum(sum(one["tokens"].values()) for one in short.facts["annotators"])
        assert 0 < spent <= budget
        for stand in stops:
            assert [equal(one) for one in stand] == [True] * 3
        pending = [sum(one["pending"] for one in stand) for stand in stops]
        assert 3 * one.planned > pending[0] > pending[1] >= pending[2] > pending[3] > 0
        done = await run_edgen("annotate", *said)
    assert done.code == 0, done.err
    assert len(service.asked) == 3 * one.planned
    asked_again = sum(count - 1 for count in service.asked.values())
    assert asked_again <= IN_FLIGHT, "but for what was out when it was killed, nothing is asked twice"
    assert crowd.most == IN_FLIGHT, "the limit of the service holds over all annotators"
    lines = [json.loads(line) for line in (run / LABELS / "labels.jsonl").read_text().splitlines()]
    assert {tuple(line["annotators"]) for line in lines} == {("annotator", "annotator-2", "annotator-3")}
    assert [line["labels"] for line in lines] == [[*unit.labels] for unit in calm]


async def test_by_batch_the_rounds_of_all_are_with_the_provider_at_once(made: Path, tmp_path: Path) -> None:
    online, batch = (Path(shutil.copytree(made, tmp_path / name / "run")) for name in ("online", "batch"))
    async with simulator("--batch-seconds", "0.6") as url:
        backend = {"type": "openai", "model": "m", "base_url": f"{url}/v1", "seed": "auto", "max_tokens": 300}
        said = ("--labels", "msdialog_intents", "--annotators", "3", "--sample", "3", "--set", f"backends.annotator={json.dumps(backend)}", "--set", "batch.poll=0.2s")  # fmt: skip
        ended = await run_edgen("annotate", batch, *said, "--via", "batch")
        assert ended.code == 0, ended.err
        assert (await run_edgen("annotate", online, *said)).code == 0
    file = Path("layers") / "msdialog_intents" / "labels.jsonl"
    assert (batch / file).read_bytes() == (online / file).read_bytes()
    ledgers = sorted((batch / file).parent.glob("annotators/*.db"))
    sent = [one.sent_at for ledger in ledgers for one in read_batches_at(ledger) if one.round == 1]
    assert len(sent) == 3
    assert max(sent) - min(sent) < 0.6, "the last is sent before the first can be answered"

"""`edgen simulator` with batches, as a process; and input outside any vendor's format."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.simulator.faults import NO_FAULTS
from edgen.simulator.service.answering import SimulatedModel
from edgen.simulator.service.batch_server import BatchFaults
from edgen.simulator.service.batches import SimulatedBatch, Store
from edgen.simulator.service.dialect import Refusal, WireCall
from edgen.simulator.service.gemini_batches import GeminiBatchServer
from edgen.simulator.service.openai_batches import OpenAIBatchServer
from tests.cli.test_simulator import simulator
from tests.dose import dose
from tests.simulator.batching import (
    ENDPOINT,
    create,
    ended,
    gemini_line,
    jsonl,
    openai_client,
    openai_line,
    until,
    upload,
)

pytestmark = pytest.mark.integration


async def test_options_reach_the_server() -> None:
    with simulator("--batch-seconds", "0.8", "--batch-window", "0.4") as (_, url):
        async with openai_client(url.removesuffix("/v1")) as api:
            batch = await ended(
                api, (await create(api, await upload(api, jsonl(map(openai_line, range(20)))))).id
            )
            assert batch.status == "expired"
            assert batch.request_counts is not None
            assert batch.request_counts.completed == 10


async def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with simulator("--batch-seconds", "900") as (process, url):
        async with openai_client(url.removesuffix("/v1")) as api:
            id_ = (await create(api, await upload(api, jsonl(map(openai_line, range(2_000)))))).id
            await until(lambda: api.batches.retrieve(id_), lambda batch: batch.status == "in_progress")
            assert list(tmp_path.iterdir())
        process.send_signal(signal.SIGTERM)
        assert process.wait(180) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=dose(12, 120), deadline=None)
@given(at=st.integers(0, 200), what=st.binary(max_size=6), gemini=st.booleans())
def test_a_line_that_passes_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, at: int, what: bytes, gemini: bool
) -> None:
    """Any file is refused as a whole, or each of its lines is a request or gets its own refusal."""
    kind = GeminiBatchServer if gemini else OpenAIBatchServer
    form = kind(Store(SimulatedModel(NO_FAULTS, 0), 0, 0), BatchFaults(NO_FAULTS))
    line = jsonl([gemini_line(1) if gemini else openai_line(1)])
    at %= len(line)
    file = tmp_path_factory.getbasetemp() / "lines.jsonl"
    file.write_bytes(line[:at] + what + line[at + len(what) :])
    batch = SimulatedBatch("b", form, form.dialect, file, "", {"endpoint": ENDPOINT}, 0, 0, 0)
    with file.open("rb") as lines:
        checked = form.check(batch, lines)
    if not checked.problems:
        with file.open("rb") as lines:
            pieces = list(lines)
        for piece in pieces:
            name, call = form.read(batch, piece)
            assert isinstance(name, str)
            assert isinstance(call, WireCall | Refusal)

"""No answer of 200 or 400 simulated conversations of shipped jobs is rejected as a placeholder or an echo."""

from __future__ import annotations

import pytest

from edgen.config import load_job
from edgen.core.values import Conversation, Request
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import make_plan
from edgen.protocols.gated import PassedConversation
from edgen.simulator.text import respond
from tests import ROOT
from tests.dose import dose

JOBS = sorted((ROOT / "jobs").glob("*.yaml"))
EACH = -(-dose(200, 400) // len(JOBS))
HOLLOW = {"placeholder", "echo"}  # a loop may be genuine


@pytest.mark.integration
@pytest.mark.long
@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_nothing_that_the_simulator_says_is_hollow(path: object) -> None:
    assert isinstance(path, type(ROOT))
    job = load_job(path)
    plan = make_plan(job, AllowedFiles.of(path))
    made = 0
    for index in range(EACH):
        work = plan.make_task(index, 0).protocol
        request: Request = next(work)
        while True:
            assert request.retry_reason not in HOLLOW, request
            reply = respond(
                request.messages,
                seed=request.seed,
                protocol=request.protocol,
                speakers=request.speakers,
                scene=request.scene,
            )
            try:
                request = work.send(reply)
            except StopIteration as end:
                made += isinstance(end.value, Conversation | PassedConversation)
                break
    assert made > EACH * 0.9

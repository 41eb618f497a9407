"""Jobs in rounds: a later round does not depend on how the earlier ones were made, and no call is paid for
twice."""

from __future__ import annotations

import contextlib
import functools
import json
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import edgen
from edgen.api.estimating import estimate_job
from edgen.api.previewing import JobPreview
from edgen.config import parse_job
from edgen.core.errors import RunError, ShortError, UsageError
from edgen.cost.options import EstimateOptions
from edgen.execution.costly_changes import find_rework
from edgen.merging.merge import merge
from edgen.planning.allowed_files import AllowedFiles
from edgen.planning.load import make_plan
from edgen.planning.plan import Plan
from edgen.protocols.base import Rounds
from edgen.store.ledger import Ledger
from edgen.store.run_folder import RunFolder
from tests.execution.batch.desk import Desk
from tests.execution.making import make_run
from tests.execution.players import KilledError, Players
from tests.execution.service import files

pytestmark = pytest.mark.integration

POOL: dict[str, Any] = {"choose": "pool", "rounds": 3, "student_turns": 4, "responses": 2}
PLAIN: dict[str, Any] = {"student_turns": 4, "responses": 2}
LABELLED: dict[str, Any] = {**PLAIN, "student_turns": 3, "labelled_by": "both", "choose": "judge"}
JOB: dict[str, Any] = {
    "name": "t",
    "seed": 7,
    "conversations": 6,
    "space": "italian_shapes",
    "protocol": "tutoring",
    "tutoring": POOL,
    "backends": {"default": {"type": "simulator"}},
    "batch": {"poll": "0.02s"},
}


def plan_for(**changes: Any) -> Plan:
    return _plan(json.dumps({**JOB, **changes}))


@functools.cache
def _plan(job: str) -> Plan:
    return make_plan(parse_job(json.loads(job), "job.yaml"), AllowedFiles.of(Path("job.yaml")))


async def execute(folder: Path, players: Players, desk: Desk | None = None, **changes: Any) -> None:
    """Run the job, online or by batches at the desk."""
    await make_run(plan_for(**changes), folder, players, desk)


def records(folder: Path) -> dict[int, Any]:
    found = [
        one for name, data in files(folder).items() if name.startswith("conv") for one in json.loads(data)
    ]
    return {one["provenance"]["scenario"]: one for one in found}


def sources(folder: Path) -> dict[int, set[int]]:
    """Return the source scenarios of each scenario's served turns."""
    return {
        index: {
            int(turn["data"]["from"].split("-")[1])
            for turn in one["conversation"]
            if turn.get("data", {}).get("served") == "pool"
        }
        for index, one in records(folder).items()
    }


@pytest.mark.parametrize("settings", [POOL, PLAIN, LABELLED], ids=["pool", "plain", "labelled"])
async def test_the_bytes_are_the_same_however_it_is_made(tmp_path: Path, settings: dict[str, Any]) -> None:
    """Two concurrencies, batches, and a run that is killed and resumed give the same bytes. The kills come in
    the first round, at its end, one call after it, and later."""
    whole = Players()
    await execute(tmp_path / "whole", whole, limits={"in_flight": 1}, tutoring=settings)
    await execute(tmp_path / "wide", Players(), tutoring=settings)
    desk = Desk()
    await execute(tmp_path / "batch", Players(), desk, tutoring=settings)
    assert set(desk.asked.values()) == {1}
    assert files(tmp_path / "whole") == files(tmp_path / "wide") == files(tmp_path / "batch")

    first_round = sum(scenario < 2 for scenario in whole.scenarios)
    asked = 0
    # The most calls of each start; each start resumes the last one.
    for calls in (20, first_round - 20, 0, 1, 10**9):
        players = Players(calls)
        with contextlib.suppress(KilledError):
            await execute(tmp_path / "killed", players, limits={"in_flight": 1}, tutoring=settings)
        asked += players.calls
    assert files(tmp_path / "killed") == files(tmp_path / "whole")
    assert asked == whole.calls


async def test_a_round_is_served_from_those_before_it(tmp_path: Path) -> None:
    await execute(tmp_path / "run", Players())
    found = sources(tmp_path / "run")
    assert all(source // 2 < index // 2 for index, several in found.items() for source in several)
    assert any(source >= 2 for index in (4, 5) for source in found[index])
    assert [records(tmp_path / "run")[index]["outcome"]["round"] for index in range(6)] == [1, 1, 2, 2, 3, 3]


async def test_killed_as_the_end_of_a_round_is_noted(tmp_path: Path) -> None:
    whole = Players()
    await execute(tmp_path / "whole", whole, limits={"in_flight": 1})
    first_round = sum(scenario < 2 for scenario in whole.scenarios)
    with pytest.raises(KilledError):
        await execute(tmp_path / "run", Players(first_round), limits={"in_flight": 1})
    with sqlite3.connect(tmp_path / "run" / "run.db") as ledger:
        assert ledger.execute("DELETE FROM meta WHERE name LIKE 'end of round%'").rowcount == 1
    ledger.close()
    await execute(tmp_path / "run", players := Players())
    assert players.calls == whole.calls - first_round
    assert files(tmp_path / "run") == files(tmp_path / "whole")


async def test_a_session_that_is_mended_later_changes_no_pool(tmp_path: Path) -> None:
    """Sessions completed later do not enter the pool, nor does a change of the job that affects no request.
    No paid call is repeated."""
    with pytest.raises(ShortError):
        await execute(tmp_path / "run", Players(fails=frozenset({1, 3})))
    before = records(tmp_path / "run")
    assert sorted(before) == [0, 2, 4, 5]
    mending = Players()
    await execute(tmp_path / "run", mending)
    assert {*mending.scenarios} == {1, 3}
    after = records(tmp_path / "run")
    assert sorted(after) == [*range(6)]
    assert {index: after[index] for index in before} == before
    assert not {1, 3} & {source for several in sources(tmp_path / "run").values() for source in several}

    changed = plan_for(split={"by": "shape"})
    async with Ledger(tmp_path / "run" / "run.db") as ledger:
        backends = {"default": Players()}
        lost = find_rework(changed, backends, RunFolder(tmp_path / "run"), ledger, None, "online")
        assert lost is None
    assert changed.prepared_rounds == 1
    again = Players()
    await execute(tmp_path / "run", again, split={"by": "shape"})
    assert not again.calls
    assert {index: one["conversation"] for index, one in records(tmp_path / "run").items()} == {
        index: one["conversation"] for index, one in after.items()
    }


@pytest.mark.parametrize("more", [{"sessions_per_round": 2}, {}], ids=["so many a round", "shares"])
def test_raised_it_is_as_if_it_had_been_so_from_the_start(tmp_path: Path, more: dict[str, Any]) -> None:
    # With this seed, a different size of the rounds serves different responses.
    job = {**JOB, "seed": 12, "tutoring": {**POOL, **more}}
    fresh = edgen.generate(job, output=tmp_path / "fresh", progress=False)
    edgen.generate({**job, "conversations": 3}, output=tmp_path / "raised", progress=False)
    raised = edgen.generate(job, output=tmp_path / "raised", progress=False)
    assert raised.status.accepted == 6
    assert files(raised.folder) == files(fresh.folder)
    assert (raised.status.calls.made == fresh.status.calls.made) is bool(more)


def test_a_piece_begins_with_the_first_round(tmp_path: Path) -> None:
    whole = edgen.generate(JOB, output=tmp_path / "whole", progress=False)
    job = tmp_path / "job.yaml"
    job.write_text(json.dumps(JOB))
    generate: Callable[..., Any] = partial(edgen.generate, job, output=tmp_path / "piece", progress=False)
    with pytest.raises(UsageError, match=r"a piece of it starts at scenario 0. Use --range 0:4"):
        generate(scenarios=range(2, 4))
    assert generate(scenarios=range(3)).status.accepted == 3
    assert generate(scenarios=range(6)).status.calls.made == whole.status.calls.made
    assert records(tmp_path / "piece") == records(tmp_path / "whole")
    with pytest.raises(RunError, match="made in rounds"):
        merge([tmp_path / "piece", tmp_path / "whole"], tmp_path / "merged")


def test_replicates_and_arms_have_rounds(tmp_path: Path) -> None:
    arms = {
        "small": {"tutoring": {"pool": {"most": 2}}},
        "plain": {"tutoring": {"choose": "draw", "rounds": 1}},
    }
    job = {**JOB, "conversations": 3, "replicates": 2, "arms": {"pool": {}, **arms}}
    run = edgen.generate(job, output=tmp_path / "run", progress=False)
    assert {arm.accepted for arm in run.status.begun_arms().values()} == {6}
    served = {arm: sources(tmp_path / "run" / "arms" / arm) for arm in ("pool", "small", "plain")}
    assert any(served["pool"].values())
    assert not any(served["plain"].values())


async def test_a_top_up_is_of_the_last_round(tmp_path: Path) -> None:
    await execute(tmp_path / "run", Players(fails=frozenset({1, 5})), top_up=True)
    found = records(tmp_path / "run")
    assert sorted(found) == [0, 2, 3, 4, 6, 7]
    assert {found[index]["outcome"]["round"] for index in (6, 7)} == {3}


def test_what_is_told_of_rounds(tmp_path: Path) -> None:
    run = edgen.generate(JOB, output=tmp_path / "run", progress=False)
    assert msgspec.to_builtins(run.status.round) == {"number": 3, "of": 3}
    job = tmp_path / "job.yaml"
    job.write_text(json.dumps(JOB))
    said = estimate_job(job, EstimateOptions(runs=tmp_path, output=tmp_path / "none")).basis.said
    assert any("made in 3 rounds of 2 scenarios" in sentence for sentence in said)
    assert JobPreview(job).make_preview(1).rounds == 3
    plan = plan_for()
    assert any("in 3 rounds" in sentence for sentence in plan.protocol.caveats(plan.settings))


def test_scenarios_are_divided_by_their_index() -> None:
    rounds = Rounds(3, 4)
    assert [rounds.of(index) for index in (0, 3, 4, 8, 11, 12, 999)] == [0, 0, 1, 2, 2, 2, 2]
    assert [*rounds.split(0, 20)] == [(0, 0, 4), (1, 4, 8), (2, 8, 20)]
    assert [*rounds.split(0, 3)] == [(0, 0, 3)]
    assert [*rounds.split(20, 30)] == [(2, 20, 30)]
    assert [*Rounds().split(5, 9)] == [(0, 5, 9)]

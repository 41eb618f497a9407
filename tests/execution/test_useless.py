"""A hopeless job stops early, says why, and asks nothing more until something changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.execution.service import Service, completion, edgen, job_text, serve, write

PROSE = "Sure! Here is a warm and friendly lesson about the topic that you asked for."


async def _prose(_service: Service, _seed: int) -> web.StreamResponse | None:
    return completion(PROSE)


def job_file(folder: Path, service: Service, **changes: Any) -> Path:
    backend = {"type": "openai", "model": "m", "base_url": service.url, "seed": "auto", "max_tokens": 400}
    values: dict[str, Any] = {"backends": {"default": backend}, "limits": {"in_flight": 4}, **changes}
    return write(folder / "job.yaml", job_text("", **values))


async def test_a_hopeless_job_stops_early_and_says_what_would_help(tmp_path: Path) -> None:
    async with serve(Service(trouble=_prose)) as service:
        job, run = job_file(tmp_path, service, conversations=3000), tmp_path / "run"
        made = await edgen("generate", job, "-o", run, "--json", "--metrics", tmp_path / "m.prom")
        assert made.code == 3, made.err
        assert service.asked.total() <= 50
        for said in (
            "0 of 40 answers are usable",
            "no_turns",
            PROSE[:40],
            "own words",
            "stop_when_useless=false",
        ):
            assert said in made.err
        status = json.loads(made.out)
        assert status["stopped"]["reason"] == "useless"
        assert status["stopped"]["at"].endswith("Z")
        assert status["retried"]["no_turns"] >= 20
        metrics = (tmp_path / "m.prom").read_text()
        assert 'edgen_stopped{run="t",reason="useless"} 1' in metrics
        assert "edgen_retries_total" in metrics

        command = made.err.split("`edgen show ")[1].split("`")[0].split()
        shown = await edgen("show", *command)
        assert shown.code == 0, shown.err
        assert PROSE in shown.out


async def test_the_same_start_again_asks_nothing(tmp_path: Path) -> None:
    async with serve(Service(trouble=_prose)) as service:
        job, run = job_file(tmp_path, service, conversations=200), tmp_path / "run"
        assert (await edgen("generate", job, "-o", run)).code == 3
        asked = service.asked.total()
        again = await edgen("generate", job, "-o", run)
        assert again.code == 3
        assert "Nothing was asked" in again.err
        assert service.asked.total() == asked


async def test_a_mended_job_goes_on_and_the_old_answers_do_not_stop_it(tmp_path: Path) -> None:
    async with serve(Service(trouble=_prose)) as service:
        job, run = job_file(tmp_path, service, conversations=60), tmp_path / "run"
        assert (await edgen("generate", job, "-o", run)).code == 3
        service.trouble = None
        mended = await edgen("generate", job, "-o", run, "--yes", "--set", "backends.default.temperature=0.5")
        assert mended.code == 0, mended.err


async def test_it_goes_on_regardless_where_it_is_told_to(tmp_path: Path) -> None:
    async with serve(Service(trouble=_prose)) as service:
        job, run = job_file(tmp_path, service, conversations=30), tmp_path / "run"
        assert (await edgen("generate", job, "-o", run)).code == 3
        made = await edgen("generate", job, "-o", run, "--set", "stop_when_useless=false", "--json")
        assert made.code == 3
        status = json.loads(made.out)
        assert status["rejected"] == {"no_turns": 30}
        assert "stopped" in status
        assert status["stopped"]["reason"] == "short"


async def test_one_hopeless_arm_leaves_the_others_at_work(tmp_path: Path) -> None:
    async with serve(Service(trouble=_prose)) as bad, serve(Service()) as good:
        address = {"backends": {"default": {"base_url": good.url}}}
        job = job_file(tmp_path, bad, conversations=25, arms={"bad": {}, "good": address})
        made = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert made.code == 3
        assert "bad: 0 of 40" in made.err
        status = json.loads(made.out)
        assert status["arms"]["good"]["accepted"] == 25
        assert status["arms"]["bad"]["stopped"]["reason"] == "useless"
        assert bad.asked.total() <= 50


async def test_gates_that_nothing_passes_stop_a_job(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        job = job_file(tmp_path, service, conversations=1000, gates={"long": "turns >= 500"}, asks=1)
        made = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert made.code == 3
        assert "0 of 50 passed the gates" in made.err
        assert "gate:long" in made.err
        assert service.asked.total() <= 60


@pytest.mark.parametrize("share", [3, 10])
async def test_a_job_with_some_usable_answers_goes_on(tmp_path: Path, share: int) -> None:
    """One answer in `share` is usable."""

    async def mostly_prose(_service: Service, seed: int) -> web.StreamResponse | None:
        return None if service.asked.total() % share == 1 else completion(PROSE)

    async with serve(Service(trouble=mostly_prose)) as service:
        job = job_file(tmp_path, service, conversations=60, limits={"in_flight": 1})
        made = await edgen("generate", job, "-o", tmp_path / "run", "--json")
        assert json.loads(made.out)["pending"] == 0


async def test_a_hopeless_annotator_stops_by_the_same_rule(tmp_path: Path) -> None:
    async with serve(Service()) as service:
        job, run = job_file(tmp_path, service, conversations=30), tmp_path / "run"
        assert (await edgen("generate", job, "-o", run)).code == 0
        service.trouble = _prose
        before = service.asked.total()
        made = await edgen("annotate", run, "--labels", "teacher_moves")
        assert made.code == 3
        assert "of the backend annotator are usable" in made.err
        assert service.asked.total() - before <= 50
        again = await edgen("annotate", run, "--labels", "teacher_moves")
        assert again.code == 3
        assert "Nothing was asked" in again.err

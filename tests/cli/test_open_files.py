"""Processes with a low limit of open files: the suggested command works, and no command ends
in a traceback."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT, fork_server
from tests.execution.service import Ended, Service, job_text, serve

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}


async def limited(files: int, *arguments: str | Path) -> Ended:
    """Run `edgen` with a limit of open files."""
    process = await fork_server.start(*arguments, limits={resource.RLIMIT_NOFILE: files})
    out, err = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode is not None
    assert b"Traceback" not in err, err.decode()
    return Ended(process.returncode, out.decode(), err.decode())


async def started(files: int, *arguments: str | Path, most: int | None = None) -> Ended:
    """Run `edgen` in a new Python process, whose imports open files too; it may raise the limit to `most`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "edgen", *map(str, arguments),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, most or files)), env=ENVIRONMENT,
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode is not None
    assert b"Traceback" not in err, err.decode()
    return Ended(process.returncode, out.decode(), err.decode())


@pytest.mark.parametrize(
    ("files", "more"), [(64, {}), (96, {"arms": {name: {"asks": n} for n, name in enumerate("abc", 1)}})]
)
async def test_the_number_of_calls_that_is_suggested_works(
    files: int, more: dict[str, Any], tmp_path: Path
) -> None:
    async with serve(Service(latency=0.02)) as service:
        path = tmp_path / "job.yaml"
        path.write_text(job_text(service.url, conversations=60, limits={"in_flight": 256}, **more))
        refused = await limited(files, "generate", path, "-o", tmp_path / "run")
        assert refused.code == 2, refused.err
        assert not (tmp_path / "run").exists()
        suggested = re.search(r"--set (limits\.in_flight=\d+)", refused.err)
        assert suggested is not None, refused.err
        ended = await limited(files, "generate", path, "-o", tmp_path / "run", "--set", suggested[1])
        assert ended.code == 0, ended.err
        assert service.answered.total() == 60 * max(1, len(more.get("arms", ())))


@pytest.mark.parametrize("files", [8, 12, 20, 32])
async def test_too_few_for_any_call_is_a_sentence(files: int, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(job_text("http://127.0.0.1:9/v1"))
    ended = await (started if files == 8 else limited)(files, "generate", path, "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert re.search(r"open \d+ files, and this job needs 33 at least|open too few files", ended.err)
    assert "in_flight" not in ended.err


async def test_a_limit_that_can_be_raised_is_raised(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(job_text("http://127.0.0.1:9/v1", backends={"default": {"type": "simulator"}}))
    ended = await started(64, "generate", path, "-o", tmp_path / "run", "-n", "9", most=512)
    assert ended.code == 0, ended.err

"""Processes of edgen for the tests: they end with their own codes, and an unfinished one affects no other."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from tests import fork_server

pytestmark = pytest.mark.integration


def test_they_have_their_own_arguments_folder_and_code(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd(), sys.argv[1], os.environ['WHOSE']); sys.exit(5)"
    done = fork_server.run("a b", code=code, cwd=tmp_path, env={"WHOSE": "mine"})
    assert (done.returncode, done.stdout) == (5, f"{tmp_path} a b mine\n")
    failed = fork_server.run(code="1 / 0")
    assert (failed.returncode, "ZeroDivisionError" in failed.stderr) == (1, True)


def test_one_that_nobody_waits_for_harms_no_other() -> None:
    async def leave() -> None:
        process = await fork_server.start(code="print('here', flush=True); import time; time.sleep(60)")
        await process.stdout.readline()
        process.kill()

    for _ in range(3):
        asyncio.run(leave())
        gc.collect()
    assert fork_server.run("--help").returncode == 0

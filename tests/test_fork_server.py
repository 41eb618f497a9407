"""Processes of edgen for the tests: they end with their own codes, and an unfinished one affects no other."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
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


async def test_commands_in_turn_have_their_own_codes_outputs_and_folders(tmp_path: Path) -> None:
    for name in ("one", "other"):
        folder = tmp_path / name
        folder.mkdir()
        code, out, _ = await fork_server.run_in_turn("list", "prompts", cwd=folder, env={"COLUMNS": "60"})
        assert (code, "education_dialogue" in out) == (0, True)
        code, out, err = await fork_server.run_in_turn("status", name, cwd=folder)
        assert (code, out) == (2, "")
        assert name in err
    ended = await asyncio.gather(*(fork_server.run_in_turn("--version") for _ in range(3)))
    assert {(code, out.split()[0]) for code, out, _ in ended} == {(0, "edgen")}


async def test_a_command_in_turn_that_is_killed_ends_no_other() -> None:
    await fork_server.run_in_turn("--version")
    (standing,) = fork_server._idle[()][-1:]
    waiting = asyncio.create_task(fork_server.run_in_turn("simulator", "--port", "0"))
    await asyncio.sleep(0)
    os.kill(standing.pid, signal.SIGKILL)
    assert (await waiting)[0] == -signal.SIGKILL
    assert (await fork_server.run_in_turn("--version"))[0] == 0

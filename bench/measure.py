"""Helpers of the benchmarks: a command run in a process of its own, its CPU, wall time and memory."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Cost:
    """The cost of a command.

    Seconds of wall time and of CPU (user and system, all threads), and peak memory in MB (1e6 bytes).
    """

    wall: float
    cpu: float
    peak_mb: float
    output: str
    errors: str = ""


def run(*command: str, expect: tuple[int, ...] = (0,), cwd: Path = ROOT) -> Cost:
    """Run a command to its end; raise an error if its exit code is not the expected one."""
    started = time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, cwd=cwd)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - started
        out.seek(0)
        err.seek(0)
        if process.returncode not in expect:
            raise SystemExit(
                f"{' '.join(command)} ended with {process.returncode}:\n{err.read().decode()[-2000:]}"
            )
        return Cost(
            wall,
            usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss * 1024 / 1e6,
            out.read().decode(),
            err.read().decode(),
        )


def edgen(*arguments: str, expect: tuple[int, ...] = (0,)) -> Cost:
    """Run an edgen command in a process of its own."""
    return run(sys.executable, "-m", "edgen", *arguments, expect=expect)


@contextlib.contextmanager
def simulator(*options: str) -> Iterator[str]:
    """Run `edgen simulator` in a second process; yield its base URL for the Chat Completions format."""
    process = subprocess.Popen(
        [sys.executable, "-m", "edgen", "simulator", "--port", "0", *options],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/v1", line)
        if found is None:
            raise SystemExit(f"edgen simulator did not say where it listens: {line!r}")
        yield found.group()
    finally:
        process.terminate()
        process.wait(timeout=10)


def machine() -> str:
    """Return the machine's description, one line."""
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {platform.system()}"

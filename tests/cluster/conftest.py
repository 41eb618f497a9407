"""Tests on a Ray cluster: `make test-cluster` installs Ray and runs them; `make test` leaves them out."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_STARTS_WITHIN, _TRIES = 240.0, 3
collect_ignore_glob = [] if os.environ.get("EDGEN_CLUSTER") else ["test_*.py"]


class Node:
    """A node of a cluster, started with `ray start`: a head at a free port, or a worker of `address`.

    A node that is not up after `_STARTS_WITHIN` seconds is killed and started again, a few times.
    """

    def __init__(self, folder: Path, *, address: str = "", cores: int = 3) -> None:
        said = ""
        for _ in range(_TRIES):
            where = [f"--address={address}"]
            if not address:
                port = free_port()
                where = ["--head", f"--port={port}", "--include-dashboard=false", "--disable-usage-stats"]
                where += [f"--temp-dir={folder}"]
            self.address = address or f"{_own_address()}:{port}"
            self.process = subprocess.Popen(
                [Path(sys.executable).with_name("ray"), "start", *where, f"--num-cpus={cores}", "--block",
                 "--object-store-memory=100000000"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            )  # fmt: skip
            said = self._starts()
            if not said:
                return
            self.kill()
        raise RuntimeError(f"ray did not start {_TRIES} times; the last one printed: {said}")

    def _starts(self) -> str:
        """Wait until it is up; else return what it printed."""
        assert self.process.stdout is not None
        late = threading.Timer(_STARTS_WITHIN, self.kill)
        late.start()
        printed = []
        try:
            for line in self.process.stdout:
                if "Ray runtime started" in line:
                    return ""
                printed.append(line)
        finally:
            late.cancel()
        return "".join(printed)[-2000:] or "nothing"

    def kill(self) -> None:
        """Kill it with all its processes, as a power failure does."""
        for pid in family(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        """End it with all processes that it started."""
        self.process.terminate()
        try:
            self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.kill()


def free_port() -> int:
    """Return a port without a listener; ports of an earlier, unfinished cluster stay reserved."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _own_address() -> str:
    from ray.util import get_node_ip_address

    return str(get_node_ip_address())


def family(root: int) -> list[int]:
    """Return a process and all its descendants."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


STARTED: list[Node] = []


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """Yield the address of a cluster with three cores."""
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_raylet_start_wait_time_s": "180"}
    if given := os.environ.get("EDGEN_CLUSTER_ADDRESS"):  # one that already runs
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        head = Node(Path(folder))
        STARTED.append(head)
        yield head.address
        head.end()
        time.sleep(0.1)

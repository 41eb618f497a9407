"""`base_url: node-local` on a real cluster of two nodes: each asks the server of its own node."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import Node
from tests.execution.service import Ended, files, job_text, serve, write
from tests.execution.service import edgen_alone as edgen
from tests.execution.slotted import SlottedServer

pytestmark = pytest.mark.integration

COUNT = 60


@contextmanager
def nodes(*servers: str) -> Iterator[str]:
    """Run a cluster with a node for each of these servers, one worker each; yield its address."""
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_raylet_start_wait_time_s": "180"}
    started: list[Node] = []
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        try:
            for number, server in enumerate(servers):
                os.environ["EDGEN_NODE_LOCAL"] = server
                started.append(Node(Path(folder), address=started[0].address if number else "", cores=1))
            del os.environ["EDGEN_NODE_LOCAL"]
            yield started[0].address
        finally:
            for node in reversed(started):
                node.end()


def place(server: SlottedServer) -> str:
    return server.url.removeprefix("http://").removesuffix("/v1")


async def run(folder: Path, job: Path, address: str) -> Ended:
    on = ("--on", f"ray://{address}", "--workers", "2")
    return await edgen("generate", job, "-o", folder, "--json", *on)


async def test_each_worker_asks_the_server_of_its_node(tmp_path: Path) -> None:
    alike: Any = {"/v1/models": {"data": [{"id": "recorded"}]}}
    other: Any = {"/v1/models": {"data": [{"id": "another"}]}}
    first, second = (SlottedServer(slots=8, latency=0.1, pages=dict(alike)) for _ in range(2))
    async with serve(first), serve(second):
        job = write(
            tmp_path / "job.yaml", job_text("node-local", conversations=COUNT, limits={"in_flight": 8})
        )
        os.environ["EDGEN_NODE_LOCAL"] = place(first)
        local = await edgen("generate", job, "-o", tmp_path / "local")
        assert local.code == 0, local.err
        expected = files(tmp_path / "local")
        first.asked.clear()
        with nodes(place(first), place(second)) as address:
            made = await run(tmp_path / "run", job, address)
            assert made.code == 0, made.err
            assert files(tmp_path / "run") == expected
            asked = first.asked.total(), second.asked.total()
            assert sum(asked) == COUNT
            assert min(asked) > COUNT / 4, asked
            assert len(made.facts["servers"]) == 2

            # Another model on one node: no call is made, and the error names both.
            second.pages["/v1/models"] = other["/v1/models"]
            mixed = await run(tmp_path / "mixed", job, address)
            assert mixed.code == 5
            assert "runs another" in mixed.err
            assert "Traceback" not in mixed.err
            assert first.asked.total() + second.asked.total() == COUNT
        second.asked.clear()
        with nodes(place(first), "127.0.0.1:9") as address:
            made = await run(tmp_path / "missing", job, address)
            assert made.code == 0, made.err
            assert files(tmp_path / "missing") == expected
            assert ":9/v1" in made.err
            assert "No server answers" in made.err

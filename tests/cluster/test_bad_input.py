"""Each fault of a cluster is one sentence with an exit code, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests import ROOT
from tests.cluster.conftest import Node, free_port
from tests.execution.service import Ended, files, job_text, port_of, serve, write
from tests.execution.service import edgen_alone as edgen
from tests.execution.slotted import SlottedServer
from tests.installing import install

pytestmark = pytest.mark.integration
LIMIT = 1_200_000  # bytes of a file


async def make(job: Path, run: Path, on: str, *more: str, **options: object) -> Ended:
    """Run `edgen generate --on` in a process with these options."""
    made = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "edgen", "generate", job, "-o", run, "--on", on, "--workers", "1", "--json", *more],
        capture_output=True, text=True, timeout=600, check=False, **options,
    )  # fmt: skip
    assert "Traceback" not in made.stderr, made.stderr
    return Ended(made.returncode, made.stdout, made.stderr)


@pytest.mark.parametrize(
    ("on", "code", "said"),
    [
        ("ray://127.0.0.1:1", 5, "No Ray cluster answers"),
        ("ray://nowhere", 2, "write a host and the port"),
        ("ray://", 2, "the address is missing"),
        ("ray://me:secret@127.0.0.1:1", 2, "write a host and the port"),
    ],
)
async def test_bad_addresses(tmp_path: Path, on: str, code: int, said: str) -> None:
    job = write(tmp_path / "job.yaml", job_text("http://127.0.0.1:1/v1"))
    made = await make(job, tmp_path / "run", on)
    assert made.code == code
    assert said in made.err


async def test_an_address_where_something_else_answers(tmp_path: Path) -> None:
    """The command fails at once; Ray itself would retry for minutes."""
    async with serve(SlottedServer()) as server:
        job = write(tmp_path / "job.yaml", job_text(server.url))
        made = await make(job, tmp_path / "run", f"ray://127.0.0.1:{port_of(server)}")
    assert made.code == 5, made.err
    assert "Something else than the head of a Ray cluster answers" in made.err


async def test_more_workers_than_the_machine_can_have(tmp_path: Path) -> None:
    job = write(tmp_path / "job.yaml", job_text("http://127.0.0.1:1/v1"))
    made = await make(job, tmp_path / "run", "ray", "--workers", "1000000000")
    assert made.code == 2, made.err
    assert "too many for this machine" in made.err


async def test_a_worker_without_the_key(tmp_path: Path, cluster: str) -> None:
    async with serve(SlottedServer()) as server:
        backend = {
            "type": "openai",
            "model": "m",
            "base_url": server.url,
            "api_key_env": "ONLY_HERE",
            "seed": "auto",
        }
        job = write(tmp_path / "job.yaml", job_text("", conversations=4, backends={"default": backend}))
        environ = {**os.environ, "ONLY_HERE": "secret"}
        made = await make(job, tmp_path / "run", f"ray://{cluster}", "--trust-host", "127.0.0.1", env=environ)
        assert made.code == 2, made.err
        assert "A worker on" in made.err
        assert "ONLY_HERE" in made.err
        assert "secret" not in made.err
        assert not server.asked


async def test_a_space_that_only_the_head_has(tmp_path: Path, cluster: str) -> None:
    shutil.copy(ROOT / "preference_space/education_dialogue.yaml", tmp_path / "mine.yaml")
    async with serve(SlottedServer(slots=50)) as server:
        job = write(tmp_path / "job.yaml", job_text(server.url, conversations=8, space="./mine.yaml"))
        assert (await edgen("generate", job, "-o", tmp_path / "here")).code == 0
        made = await make(job, tmp_path / "there", f"ray://{cluster}")
        assert made.code == 0, made.err
        assert files(tmp_path / "here") == files(tmp_path / "there")


async def test_a_protocol_that_only_the_head_has(tmp_path: Path, cluster: str) -> None:
    """The workers cannot run the protocol's generators, so they only make the calls."""
    plugin = tmp_path / "plugin"
    code = (
        "from edgen.protocols.oneshot import *\nfrom edgen.core.registry import find\n"
        "Base = type(find('protocol', 'oneshot'))\n"
        "class Protocol(Base):\n    name = 'only_here'\nPROTOCOL = Protocol()\n"
    )
    install(plugin, "only-here", "[edgen.protocols]\nonly_here = only_here:PROTOCOL\n", code)
    environ = {**os.environ, "PYTHONPATH": str(plugin)}
    async with serve(SlottedServer(slots=50)) as server:
        job = write(tmp_path / "job.yaml", job_text(server.url, conversations=8, protocol="only_here"))
        made = await make(job, tmp_path / "run", f"ray://{cluster}", env=environ)
        assert made.code == 0, made.err
        assert "The workers only make calls" in made.err
        assert "only_here" in made.err
        assert server.asked.total() == 8


async def test_a_head_without_disk_space(tmp_path: Path, cluster: str) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))

    async with serve(SlottedServer(slots=50)) as server:
        job = write(tmp_path / "job.yaml", job_text(server.url, conversations=400, limits={"in_flight": 8}))
        made = await make(job, tmp_path / "run", f"ray://{cluster}", preexec_fn=limit)
        assert made.code == 4, made.err
        assert "Free some space" in made.err or "disk" in made.err
        again = await make(job, tmp_path / "run", f"ray://{cluster}")
        assert again.code == 0, again.err
        assert server.asked.total() <= 400 + 8
        assert json.loads(again.out)["accepted"] == 400


async def test_another_version_of_ray(tmp_path: Path) -> None:
    patched = (
        "import sys, ray; ray.__version__ = '2.1.0'; "
        "from ray.scripts.scripts import main; sys.argv = ['ray', *sys.argv[1:]]; main()"
    )
    from ray.util import get_node_ip_address

    port = free_port()
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        head = await asyncio.to_thread(
            subprocess.Popen,
            [sys.executable, "-c", patched, "start", "--head", f"--port={port}", "--num-cpus=1", "--include-dashboard=false",
             "--disable-usage-stats", f"--temp-dir={folder}", "--object-store-memory=100000000", "--block"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert head.stdout is not None
        for line in head.stdout:
            if "Ray runtime started" in line:
                break
        try:
            job = write(tmp_path / "job.yaml", job_text("http://127.0.0.1:1/v1"))
            made = await make(job, tmp_path / "run", f"ray://{get_node_ip_address()}:{port}")
            assert made.code == 5, made.err
            assert "2.1.0" in made.err
        finally:
            head.terminate()
            head.wait(60)


_SKEWED = """
import os, sys, time
_real = time.time
time.time = lambda: _real() + 3600.0
with open({told!r}, "a") as file:
    file.write(f"{{os.getpid()}}\\n")
"""


async def test_a_node_whose_clock_is_an_hour_ahead(tmp_path: Path) -> None:
    """All Python processes of the node, edgen's and Ray's, have a clock an hour ahead of the head's."""
    skew = tmp_path / "skew"
    skew.mkdir()
    told = skew / "told"
    (skew / "sitecustomize.py").write_text(_SKEWED.format(told=str(told)))
    async with serve(SlottedServer(slots=50, latency=0.05)) as server:
        job = write(tmp_path / "job.yaml", job_text(server.url, conversations=40, limits={"in_flight": 8}))
        assert (await edgen("generate", job, "-o", tmp_path / "local")).code == 0
        with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
            head = await asyncio.to_thread(Node, Path(folder), cores=0)
            address = head.address
            os.environ["PYTHONPATH"] = str(skew)
            try:
                node = await asyncio.to_thread(Node, Path(folder), address=address, cores=1)
            finally:
                del os.environ["PYTHONPATH"]
            try:
                began = time.time()
                made = await make(job, tmp_path / "run", f"ray://{address}")
                assert made.code == 0, made.err
                (worker,) = json.loads(made.out)["workers"]
                assert worker.rpartition("/")[2] in told.read_text().split(), "the worker's clock was right"
                assert files(tmp_path / "run") == files(tmp_path / "local")
                with sqlite3.connect(tmp_path / "run/run.db") as ledger:
                    times = [one for (one,) in ledger.execute("SELECT answered_at FROM replies")]
                assert began <= min(times) <= max(times) <= time.time()
            finally:
                node.end()
                head.end()

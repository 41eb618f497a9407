"""Batch services of plugins with mistakes: the provider is named, and no command waits forever."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgen.core.plugins import unending_tasks
from edgen.providers import plugin_batches
from tests.cli.command import Command
from tests.cli.odd_plugins import PROVIDER, Site, job, made_run, run, site

__all__ = ["job", "made_run", "run", "site"]

SERVICE = """
import asyncio, json
from pathlib import Path
from edgen.plugin import BatchAnswers
from edgen.plugin.providers import BatchLimits, BatchServices, LineResult, RemoteBatch

files = {}

def read_line(line):
    return LineResult(id=json.loads(line), reply=Reply("Teacher: Hi.\\nStudent: Yes."))

class Service:
    limits = BatchLimits(1_000, 1_000_000)
    settles = client = None

    def line(self, name, request): return json.dumps(name).encode()
    def read(self, line): return read_line(line)
    async def upload(self, file, token): files["sent"] = Path(file).read_bytes()
    async def create(self, sending): return RemoteBatch(id="b1", state="working")
    async def find(self, sending): return None
    async def state(self, remote_id):
        return RemoteBatch(id="b1", state="ended", outcome="completed", files=("r1",))
    async def cancel(self, remote_id): pass
    async def forget(self, file_id): pass
    async def download(self, file_id, to, limit=0): Path(to).write_bytes(files["sent"])
    async def aclose(self): pass
    CHANGE

def open_service(backend, environ, patience):
    return Service()
"""
ENDLESS = """async def aclose(self):
        while True:
            try: await asyncio.sleep(10 ** 6)
            except asyncio.CancelledError: pass"""
ODD = ("--set", "backends={default: {type: odd}}", "--via", "batch")


def provide(change: str) -> str:
    """Return a provider with a batch service that `change` redefines in part."""
    code = PROVIDER.replace("class OddConfig", f"{SERVICE.replace('CHANGE', change)}\nclass OddConfig", 1)
    code = code.replace("class Odd(Provider)", "class Odd(BatchAnswers, Provider)")
    code = code.replace("ANSWER", "return Reply('')")
    return code.replace(
        "    Config = Odd", "    batches = BatchServices(open_service, read_line)\n    Config = Odd"
    )


def test_a_good_one(command: Command, site: Site, job: Path, tmp_path: Path) -> None:
    site.add("providers", "odd", provide(""))
    ended = command("generate", job, *ODD, "-o", tmp_path / "run")
    assert ended.code == 0, ended.err
    assert "accepted   12" in ended.out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("limits = 5", "returned 5, an int, not a BatchLimits as `limits`"),
        ("settles = 'long'", "returned 'long', a str, not a number of seconds or None as `settles`"),
        ("def line(self, name, request): return 'x'", "returned 'x', a str, not bytes from `line`"),
        ("def line(self, name, request): return b'a\\nb'", "returned more than one line from `line`"),
        ("async def upload(self, file, token): return 5", "returned 5, an int, not an id or None from `upload`"),
        ("async def create(self, sending): return 5", "returned 5, an int, not a RemoteBatch from `create`"),
        ("def create(self, sending): return 5", "has a batch service whose `create` is not `async def`"),
        ("async def create(self, sending): exit(0)", "raised SystemExit: 0 in `create` of its batch service ("),
        ("async def state(self, remote_id): pass", "returned None, a NoneType, not a RemoteBatch from `state`"),
        ("async def download(self, file_id, to, limit=0): pass", "returned from `download` and did not write the file"),
        ("async def aclose(self): 1 / 0", "raised ZeroDivisionError: division by zero ("),
        (ENDLESS, "did not return from `aclose` of its batch service within 0.1 s"),
    ],
)  # fmt: skip
def test_one_with_a_mistake(
    command: Command, site: Site, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    change: str, said: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(plugin_batches, "_CLOSING", 0.1)
    monkeypatch.setattr(unending_tasks, "CANCELLING", 0.1)
    site.add("providers", "odd", provide(change))
    ended = command("generate", job, *ODD, "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert f"The provider 'odd' of odd-pack 1.0 {said}" in ended.err


def test_no_service(command: Command, site: Site, job: Path, tmp_path: Path) -> None:
    site.add("providers", "odd", provide("").replace("return Service()", "return None"))
    ended = command("generate", job, *ODD, "-o", tmp_path / "run")
    assert ended.code == 2, ended.err
    assert "of odd-pack 1.0 has a batch service without `limits`: NoneType" in ended.err

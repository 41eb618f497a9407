"""Plugin packages with mistakes: sources to change, a folder to install them in, and a run."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgen.core import registry
from tests.cli.command import Command, call
from tests.installing import install

JOB = """
name: small
seed: 7
conversations: 12
space: education_dialogue_faithful
prompt: education_dialogue
backends: {default: {type: simulator}}
"""

FAMILY = """
import msgspec
from edgen.domains.education import family as education
from edgen.families import base

class Swapped(type(education.EDUCATION)):
    name = "swapped"

    def read(self, data):
        known = super().read(data)
        turns = known.turns
        CHANGE
        made = msgspec.structs.replace(known.conversation, turns=tuple(turns))
        return msgspec.structs.replace(known, conversation=made)

IT = Swapped()
"""

PROVIDER = """
from edgen.config.backends import BackendConfig
from edgen.core.values import Reply
from edgen.providers.base import Provider

class OddConfig(BackendConfig, frozen=True, kw_only=True, tag_field="type", tag="odd"):
    model: str = "odd"

class OddBackend:
    model = "odd"
    identity = {"type": "odd"}

    async def complete(self, request):
        ANSWER

    async def models(self):
        return None

    async def aclose(self):
        pass

class Odd(Provider):
    name = "odd"
    Config = OddConfig

    def create(self, config, key, link):
        return OddBackend()

IT = Odd()
"""

PROTOCOL = """
from edgen.core.values import Conversation, Rejection, Turn
from edgen.protocols.oneshot import Oneshot

class Odd(type("Odd", (Oneshot,), {})):
    name = "odd"

    def start(self, scenario, replicate, prompts, rules):
        work = super().start(scenario, replicate, prompts, rules)
        WORK

IT = Odd()
"""

FORMAT = """
from edgen.export.format import Format, FormatCard, LeftOut, Row

def rows(run, chat):
    for number, one in enumerate(run.conversations()):
        ROWS

IT = Format(name="odd", summary="Odd.", rows=rows, tables={"id": "the conversation"}, use="load it", chat=False, MORE)
"""


COLUMNS = """
from edgen.plugin import Histogram, Mean, Measure, NeedsDataSet, OwnTexts, Share, Tally, figure_kinds

class Odd(Measure):
    name = "odd"
    definition = "Nothing that anybody needs."
    aggregates = (AGGREGATES,)

    def of_one(self, sample, words, space):
        return COLUMNS
MORE

IT = Odd()
"""


def measure(aggregates: str, columns: str, more: str = "", parts: str = "") -> str:
    code = COLUMNS.replace("AGGREGATES", aggregates).replace("COLUMNS", columns).replace("MORE", more)
    return code.replace("Odd(Measure)", f"Odd({parts}Measure)")


class Site:
    """A folder of installed packages, which is on the path once it holds something."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch

    def add(self, group: str, name: str, code: str) -> None:
        """Install a package with one module and one entry point."""
        self.folder.mkdir()
        self._monkeypatch.syspath_prepend(self.folder)
        self._monkeypatch.setenv("PYTHONPATH", str(self.folder))
        install(self.folder, "odd-pack", f"[edgen.{group}]\n{name} = odd_pack:IT\n", code)

    def replace(self, code: str) -> None:
        """Have the package hold other code from now on."""
        sys.modules.pop("odd_pack")
        (self.folder / "odd_pack.py").write_text(code)
        registry._find.cache_clear()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    yield Site(tmp_path / "site", monkeypatch)
    sys.modules.pop("odd_pack", None)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    return path


def calls_made(command: Command, run: Path) -> int:
    return int(json.loads(command("status", run, "--json").out)["calls"]["made"])


def error_of(command: Command, name: str) -> str:
    """Return the reason in `edgen plugins` why a plugin is unusable."""
    found = json.loads(command("plugins", "--json").out)["plugins"]
    return str(next(one["error"] for one in found if one["name"] == name))


@pytest.fixture(scope="session")
def made_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the run of `JOB`."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "job.yaml").write_text(JOB)
    assert call("generate", folder / "job.yaml", "-o", folder / "run") == 0
    return folder / "run"


@pytest.fixture
def run(made_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made_run, tmp_path / "run"))

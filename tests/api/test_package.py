"""The package as somebody's program has it: quick to import, typed, its examples true."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import edgen.api
from tests import ROOT

pytestmark = pytest.mark.integration

USER = """
import asyncio
from pathlib import Path

import edgen


async def answer(request: edgen.Request) -> str:
    return request.messages[0].content


def show(event: edgen.Event) -> None:
    print(event.name, event.text, event.facts)


def main() -> None:
    job = edgen.Job(name="mine", conversations=2, space="education_dialogue", prompt="education_dialogue")
    run: edgen.Run = edgen.generate(job, backends={"default": answer}, on_event=show, seed=3)
    accepted: int = run.status.accepted
    topics = [conversation.scenario["topic"] for conversation in run.conversations()]
    folder: Path = run.folder
    comparison: edgen.Comparison = edgen.compare(run, edgen.open(folder))
    print(accepted, topics, comparison.metrics)
    asyncio.run(edgen.agenerate({"name": "other"}, output=folder))
    try:
        run.pairs(by="oracle")
    except edgen.errors.ShortError as error:
        print(error.exit_code)
"""


def test_a_users_program_is_typed(tmp_path: Path) -> None:
    path = tmp_path / "user.py"
    path.write_text(USER)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), str(path)],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_import_is_quick_and_loads_nothing() -> None:
    code = (
        "import time; before = time.process_time(); import edgen; took = time.process_time() - before\n"
        "import sys\n"
        "assert took < 0.15, took\n"
        "assert not {'msgspec', 'yaml', 'typer', 'rich', 'jinja2', 'aiohttp', 'numpy'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "name", [module.name for module in pkgutil.walk_packages(edgen.api.__path__, "edgen.api.")]
)
def test_the_examples_of_the_api_are_true(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed == 0


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(os.fspath(edgen.__file__)).parent / "py.typed").exists()

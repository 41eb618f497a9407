"""The package in a user's program: quick to import, typed, its examples correct."""

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

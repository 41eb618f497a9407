"""In a notebook: the quick start as it is documented, its bar and its tables, and the stop button."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.late import Late

nbformat, nbclient = Late("nbformat"), Late("nbclient")
missing = [name for name in ("nbformat", "nbclient", "ipykernel") if find_spec(name) is None]

pytestmark = [pytest.mark.integration, pytest.mark.skipif(missing != [], reason=f"not installed: {missing}")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def done(folder: Path) -> Any:
    """The quick start, and the stop button in a cell below it, executed."""
    notebook = nbformat.read(ROOT / "docs" / "quickstart.ipynb", as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(INTERRUPTED))
    with pytest.MonkeyPatch.context() as monkeypatch:
        return execute(notebook, folder, monkeypatch)


def execute(notebook: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    monkeypatch.setenv("TMPDIR", str(folder))
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    return client.execute()


def html_of(notebook: Any) -> str:
    return "".join(
        output.get("data", {}).get("text/html", "")
        for cell in notebook.cells
        for output in cell.get("outputs", ())
    )


def test_the_quick_start_runs_from_start_to_end(done: Any, folder: Path) -> None:
    page = html_of(done)
    assert '<progress value="40" max="40">' in page
    assert "<td" in page
    assert len(list(folder.glob("*/lessons/shards/*.json"))) > 1


INTERRUPTED = """
import os, signal, threading, time
import edgen

job = edgen.Job(name="long", conversations=200_000, space="education_dialogue", prompt="education_dialogue",
                backends={"default": {"type": "simulator"}})
started = time.monotonic()
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    edgen.generate(job, output="long")
except KeyboardInterrupt:
    status = edgen.open("long").status
    print("stopped:", status.state, status.accepted > 0, time.monotonic() - started < 60)
"""


def test_the_stop_button(done: Any) -> None:
    said = "".join(output.get("text", "") for output in done.cells[-1].outputs)
    assert "stopped: stopped True True" in said

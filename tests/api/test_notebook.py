"""In a notebook: the quick start as it is documented, its bar and its tables, and the stop button."""

from __future__ import annotations

import copy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests import notebook_page
from tests.late import Late

nbformat = Late("nbformat")
missing = [name for name in ("nbformat", "nbclient", "ipykernel") if find_spec(name) is None]

pytestmark = [pytest.mark.integration, pytest.mark.skipif(missing != [], reason=f"not installed: {missing}")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def done(folder: Path) -> Any:
    """Return the executed quick start, with the stop button in a cell below it."""
    notebook = notebook_page.read()
    notebook.cells.append(nbformat.v4.new_code_cell(INTERRUPTED))
    return notebook_page.execute(notebook, folder)


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


def outputs_of(cell: Any) -> list[Any]:
    """Return the outputs of a cell without progress bars: how often a bar is drawn depends on the machine."""
    shown = [output for output in cell.get("outputs", ()) if output["output_type"] != "display_data"]
    return [{key: output.get(key) for key in ("data", "text", "name")} for output in shown]


def test_the_outputs_in_the_file_are_those_of_its_cells(done: Any) -> None:
    """`make docs` writes the outputs."""
    executed, kept = notebook_page.settle(copy.deepcopy(done)), notebook_page.read()
    for cell, shown in zip(kept.cells, executed.cells, strict=False):
        assert outputs_of(cell) == outputs_of(shown), cell.source
        assert "cannot" not in str(outputs_of(cell))
    assert sum(bool(outputs_of(cell)) for cell in kept.cells) >= 8


INTERRUPTED = """
import os, signal, threading, time
import edgen

job = edgen.Job(name="long", conversations=200_000, space="education_dialogue", prompt="education_dialogue",
                backends={"default": {"type": "simulator"}})
started = time.monotonic()
threading.Timer(3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    edgen.generate(job, output="long")
except KeyboardInterrupt:
    status = edgen.open("long").status
    print("stopped:", status.state, status.accepted > 0, time.monotonic() - started < 60)
"""


def test_the_stop_button(done: Any) -> None:
    said = "".join(output.get("text", "") for output in done.cells[-1].outputs)
    assert "stopped: stopped True True" in said

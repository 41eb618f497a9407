"""A report is independent of matplotlib's files in a user's home: settings and list of fonts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.report.runs import made

SETTINGS = "axes.facecolor: red\nlines.linewidth: 9\naxes.spines.top: False\nsavefig.facecolor: red\nfont.weight: bold\n"
ANNOUNCED = "lists the fonts of this machine"


def report(run: Path, home: Path) -> tuple[str, str]:
    """Write a report in a new process with matplotlib's files in `home`; return the page and the remarks."""
    done = subprocess.run(
        [sys.executable, "-m", "edgen", "report", str(run)],
        capture_output=True, text=True, timeout=100,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MPLCONFIGDIR": str(home)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return (run / "report.html").read_text(), done.stderr


@pytest.mark.only_long
@pytest.mark.integration
def test_the_first_report_announces_the_list_of_fonts_and_no_settings_change_a_page(tmp_path: Path) -> None:
    run, plain, coloured = made(tmp_path / "run"), tmp_path / "plain", tmp_path / "coloured"
    plain.mkdir()
    page, said = report(run, plain)
    assert ANNOUNCED in said
    shutil.copytree(plain, coloured)  # with its list of fonts
    (coloured / "matplotlibrc").write_text(SETTINGS)
    page_again, said = report(run, coloured)
    assert ANNOUNCED not in said
    assert page_again == page

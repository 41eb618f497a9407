"""Files in CIMA's layout on the pages of `edgen web`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import ROOT
from tests.cli.command import call
from tests.web.data_pages import open_in_pages

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("forked_processes")]


def test_exported_files_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert call("generate", ROOT / "jobs" / "tutoring.yaml", "-n", 2, "-o", tmp_path / "run") in (0, 3)
    assert call("export", tmp_path / "run", "--to", "cima", "-o", tmp_path / "files") == 0
    capsys.readouterr()
    open_in_pages(tmp_path / "files", "", "Tutor")

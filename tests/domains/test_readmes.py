"""Each domain's folder has a README.md that names its files correctly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import ROOT

DOMAINS = sorted(path.parent for path in (ROOT / "edgen" / "domains").glob("*/__init__.py"))


@pytest.mark.parametrize("folder", DOMAINS, ids=lambda folder: folder.name)
def test_a_readers_page_names_the_files_that_are_there(folder: Path) -> None:
    page = (folder / "README.md").read_text("utf-8")
    for title in ("**Source.**", "## A record", "## Where to start reading"):
        assert title in page
    named = re.findall(r"`([\w/]+\.py|[\w]+/)`", page.partition("## Where to start reading")[2])
    assert len(named) >= 4
    assert [name for name in named if not (folder / name).exists()] == []
    assert [
        name for name in re.findall(r"\b(?:jobs|docs|tests)/[\w/.]*\w", page) if not (ROOT / name).exists()
    ] == []

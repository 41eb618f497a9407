"""Files in the published layouts of MSDialog, DSTC7 and the intent corpus, on the pages of `edgen web`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.domains.retrieval.test_reading import TALK, UBUNTU, dialog, example
from tests.web.data_pages import open_in_pages

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("forked_processes")]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_intents(tmp_path: Path) -> None:
    lines = "OQ\tWhere is it?\tUser\nPA\tIn the settings.\tAgent\n\nOQ\tAnd now?\tUser\nPA_FD\tTry again.\tAgent\n"
    (tmp_path / "intents.tsv").write_text(lines, "utf-8")
    assert "label" in open_in_pages(tmp_path / "intents.tsv", "", "User")


def test_msdialog(tmp_path: Path) -> None:
    file = tmp_path / "MSDialog-Complete.json"
    file.write_text(json.dumps({"1": dialog(*TALK), "2": dialog(*TALK)}), "utf-8")
    open_in_pages(file, "lamp", "Is the bulb loose?")


def test_dstc7(tmp_path: Path) -> None:
    file = tmp_path / "ubuntu_train_subtask_1.json"
    file.write_text(json.dumps([example(1, *UBUNTU), example(2, *UBUNTU[:2])]), "utf-8")
    open_in_pages(file, "disk", "Turn it off first.")

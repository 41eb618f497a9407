"""A copy of the run that a module's tests share (its fixture `made`), and commands in this process."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.command import Command


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)

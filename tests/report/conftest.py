from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from edgen.report.page import write_report
from tests.cli.command import Command
from tests.execution.service import ROOT
from tests.report.runs import awkward, hostile, judged, made

KINDS = {
    "plain": ("quickstart", ()),
    "arms": ("experiment", ()),
    "rejected": (
        "quickstart",
        ("--set", 'backends.default={type: simulator, faults: "refusal=1"}', "--set", "asks=1"),
    ),
}

MADE = {
    "hostile": hostile,
    "awkward": awkward,
    "pairs": judged,
    "one": lambda folder: made(folder / "run", n=1),
}


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that returns the run of a kind with its report, made once and never changed."""

    @functools.cache
    def make(kind: str) -> Path:
        folder = tmp_path_factory.mktemp(kind)
        if kind in MADE:
            run = MADE[kind](folder)
        else:
            job, options = KINDS[kind]
            run = made(folder / "run", *options, job=ROOT / "jobs" / f"{job}.yaml", n=60)
        write_report(run)
        return run

    return make

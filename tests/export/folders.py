"""A small run, and its exports in folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from edgen.core.registry import find
from edgen.export.write import Exported, export
from tests.export.runs import MemoryRun, compared, lesson, turns

GOOD = turns("T What is half of 4?", "S No idea.", "T Draw four dots.", "S Two!")
BAD = turns("T What is half of 4?", "S No idea.", "T Think.")
RUN = MemoryRun(
    taught=[
        lesson(index, number, said, "test" if index == 2 else "train")
        for index in range(3)
        for number, said in enumerate((GOOD, BAD))
    ],
    pairs=[compared(0, GOOD, BAD), compared(1, GOOD, GOOD), compared(2, GOOD, BAD, split="test")],
)


def write(name: str, run: MemoryRun, target: Path, **how: Any) -> Exported:
    format_ = find("format", name)
    return export(run, format_, target, format_.read(how))


def head(folder: Path) -> dict[str, Any]:
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert text.startswith("---\n")
    front = yaml.safe_load(text.split("---\n")[1])
    assert isinstance(front, dict)
    return front

"""README.md and docs/ tell the truth: their console blocks print what they show, their paths exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.readme import DOCUMENTS, README, ROOT, blocks, run, sandbox


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_prints_what_the_document_shows(tmp_path: Path, document: Path) -> None:
    folder = sandbox(tmp_path)
    count = 0
    for _, _, steps in blocks(document.read_text()):
        for step in steps:
            output = run(step.command, folder)
            assert step.matches(output), (
                f"$ {step.command}\n{output}\n({document.name} differs; `make docs` rewrites it)"
            )
            count += 1
    assert count >= 4 or document.name == "job.md"  # which shows files, no commands


def test_every_command_has_its_help_in_the_readme() -> None:
    text = README.read_text()
    for name in (
        "init",
        "preview",
        "generate",
        "status",
        "parse",
        "validate",
        "space",
        "doctor",
        "simulator",
        "pairs",
        "export",
    ):
        assert re.search(rf"edgen {name}\b", text), name


def test_links_lead_somewhere() -> None:
    for document in (*DOCUMENTS, ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if not target.startswith("http"):
                assert (document.parent / target).exists(), f"{document} links to {target}"

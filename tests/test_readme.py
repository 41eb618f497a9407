"""README.md tells the truth: its console blocks print what it shows, its paths exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.readme import README, ROOT, blocks, run, sandbox


def test_every_command_prints_what_the_readme_shows(tmp_path: Path) -> None:
    folder = sandbox(tmp_path)
    count = 0
    for _, _, steps in blocks(README.read_text()):
        for step in steps:
            output = run(step.command, folder)
            assert step.matches(output), (
                f"$ {step.command}\n{output}\n(README.md differs; `make docs` rewrites it)"
            )
            count += 1
    assert count >= 5


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
    ):
        assert re.search(rf"edgen {name}\b", text), name


def test_links_lead_somewhere() -> None:
    for document in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / document).read_text()):
            if not target.startswith("http"):
                assert (ROOT / target).exists(), f"{document} links to {target}"

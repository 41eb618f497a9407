"""README.md and docs/ are correct: their console blocks print the shown output, their paths exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from edgen.cli.app import app
from tests.readme import DOCUMENTS, README, ROOT, RUN_BY_BLOCK, blocks, run, sandbox

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    "document",
    [path for path in RUN_BY_BLOCK if "```console" in path.read_text()],
    ids=lambda path: path.name,
)
def test_every_command_prints_what_the_document_shows(tmp_path: Path, document: Path) -> None:
    folder = sandbox(tmp_path)
    for _, _, steps in blocks(document.read_text()):
        for step in steps:
            output = run(step.command, folder)
            assert step.matches(output), (
                f"$ {step.command}\n{output}\n({document.name} differs; `make docs` rewrites it)"
            )


def test_the_commands_of_the_readme_run_after_the_demo(tmp_path: Path) -> None:
    """They build on the run of `make demo`, and on each other.

    The runs are small here; the commands of docs/pairs.md and docs/experiments.md make them whole.
    """
    (listed,) = (
        found[1]
        for found in re.finditer(r"^```sh\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
        if found[1].startswith("edgen ")
    )
    folder = sandbox(tmp_path)
    run("edgen generate jobs/quickstart.yaml -n 40", folder)
    for line in listed.splitlines():
        command = re.sub(r"^edgen generate \S+", r"\g<0> -n 20", line.partition(" #")[0].strip())
        ended = run(f"{command} > shown.txt 2>&1; echo $?", folder)
        assert ended.strip() == ("3" if "exit code 3" in line else "0"), (
            f"$ {line}\n{(folder / 'shown.txt').read_text()}"
        )


def test_every_command_has_its_help_in_the_documents() -> None:
    text = (ROOT / "docs" / "commands.md").read_text()
    names = get_command(app).commands  # type: ignore[attr-defined]
    assert len(names) >= 20
    for name in names:
        assert re.search(rf"^### edgen {name}\b", text, re.MULTILINE), name


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 200


def test_links_lead_somewhere() -> None:
    for document in (*DOCUMENTS, ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if not target.startswith("http"):
                assert (document.parent / target).exists(), f"{document} links to {target}"

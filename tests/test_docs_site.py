"""The documentation site builds without a warning, and the page of commands is what the commands say."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT, commands_page
from tests.readme import DOCUMENTS


@pytest.mark.integration
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    if importlib.util.find_spec("sphinx") is None:
        pytest.skip("Sphinx is not installed here: it is in the group `docs`")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", tmp_path / "cache", ROOT / "docs", tmp_path / "site"],
        capture_output=True, text=True, timeout=900, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "ConversationProtocol" in (tmp_path / "site" / "reference.html").read_text()


@pytest.mark.integration
def test_the_page_of_commands_is_what_the_commands_say() -> None:
    assert commands_page.PAGE.read_text() == commands_page.page(), "`make docs` rewrites docs/commands.md"


def test_every_page_is_in_the_contents() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    listed = set(
        re.findall(
            r"^([a-z_]+)$", "".join(re.findall(r"```{toctree}\n(.*?)```", index, re.DOTALL)), re.MULTILINE
        )
    )
    assert listed == {page.stem for page in DOCUMENTS if page.parent == ROOT / "docs"} - {"index"}

"""docs/plugins.md, executed step by step in an empty folder and a fresh environment."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests import ROOT

pytestmark = pytest.mark.integration

# A file is its path in backquotes on its own line, and the next block; a console block contains commands.
_BLOCK = re.compile(r"(?:^`(?P<path>[^`\n]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
_INSTALLS = "pip install -e ."
# The fresh environment is made in the test, without a network: it sees the packages of this one.
_PREPARED = ("mkdir my-plugin", "cd my-plugin", "python -m venv .venv", ". .venv/bin/activate", 'pip install "../edgen[analysis]" pytest')  # fmt: skip

COMMANDS = """
import sys
from edgen.cli.app import app
from edgen.cli.output import run_guarded
sys.exit(run_guarded(lambda: app(sys.argv[1:], prog_name="edgen")))
"""


class Reader:
    """A reader who follows the page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "my-plugin"
        self.folder.mkdir()
        venv.create(folder / ".venv", with_pip=False, symlinks=True)
        self._bin = folder / ".venv" / "bin"
        (self._site,) = (folder / ".venv" / "lib").glob("python*/site-packages")
        seen = [str(ROOT), *(path for path in sys.path if path and Path(path).is_dir())]
        (self._site / "seen.pth").write_text("\n".join(seen))
        self.did: list[str] = []

    def write(self, path: str, text: str) -> None:
        (self.folder / path).write_text(text)

    def type(self, command: str) -> str:
        """Run a line of a console block; return its output."""
        self.did.append(command)
        if command in _PREPARED:
            return ""
        if command == _INSTALLS:
            return self._install()
        words = shlex.split(command)
        if words[0] == "mkdir":
            return self._run("/bin/mkdir", *words[1:])
        python = str(self._bin / "python")
        if words[0] == "pytest":
            return self._run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words[1:])
        assert words[0] == "edgen", f"the page has a command that this test does not know: {command}"
        return self._run(python, "-c", COMMANDS, *words[1:])

    def _run(self, *arguments: str) -> str:
        environ = {"PATH": os.defpath, "HOME": str(self.folder.parent), "TMPDIR": str(self.folder.parent)}
        done = subprocess.run(
            arguments, cwd=self.folder, env=environ, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"{self.did[-1]}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def _install(self) -> str:
        """Install like `pip install -e .`: unpack the build backend's editable wheel."""
        code = "from hatchling.build import build_editable; print(build_editable('..'))"
        wheel = self._run(sys.executable, "-c", code).split()[-1]
        with zipfile.ZipFile(self.folder.parent / wheel) as archive:
            archive.extractall(self._site)
        # Python reads a .pth file of a site folder, as it does for every editable install.
        return wheel


@pytest.mark.only_long
@pytest.mark.skipif(sys.platform == "win32", reason="the page's commands are a Unix shell's")
def test_the_page_leads_from_an_empty_folder_to_a_tested_plugin_of_each_kind(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    said: dict[str, str] = {}
    for block in _BLOCK.finditer((ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")):
        if block["kind"] == "console":
            for line in block["text"].splitlines():
                said[line.removeprefix("$ ")] = reader.type(line.removeprefix("$ "))
        else:
            assert block["path"], f"a block without a file: {block['text'][:80]}"
            reader.write(block["path"], block["text"])
    assert "turns that ask" in said["edgen stats run --only questions"]
    assert "5 passed" in said["pytest"]
    listed = said["edgen list plugins"].split("\n")
    assert sum("my-plugin 0.1" in line for line in listed) == 5
    assert not [line for line in listed if "note:" in line or "ERROR" in line]


def test_every_import_of_the_page_is_public() -> None:
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    modules = set(re.findall(r"^(?:from|import) (edgen[\w.]*)", text, re.M))
    assert modules == {"edgen.plugin", "edgen.testing"}

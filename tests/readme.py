"""The console blocks of README.md and of docs/, run as a reader would run them.

python -m tests.readme rewrites the outputs in them (make docs).

A block is fenced as ```console; a line `$ command` is run, and the lines after it are its standard output. A
line `…` stands for any lines, also when the outputs are rewritten.
"""

from __future__ import annotations

import difflib
import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests import ROOT, fork_server

README = ROOT / "README.md"
DOCUMENTS = [README, *sorted((ROOT / "docs").glob("*.md"))]
# The commands of docs/plugins.md build on each other in one folder: tests/test_plugin_page.py runs them.
RUN_BY_BLOCK = [path for path in DOCUMENTS if path.name != "plugins.md"]


@dataclass(frozen=True)
class Step:
    """One command and the output that a document shows for it."""

    command: str
    shown: list[str]

    def matches(self, output: str) -> bool:
        pattern = "".join(r"(?:.*\n)*" if line == "…" else re.escape(line) + "\n" for line in self.shown)
        return re.fullmatch(pattern, output) is not None

    def renewed(self, output: str) -> str:
        """Return the output without the parts that `…` stands for.

        Each shown part becomes the most similar lines of the output after those of the part before.
        """
        if "…" not in self.shown:
            return output
        lines, at, kept = output.splitlines(), 0, []
        for left_out, part in itertools.groupby(self.shown, "…".__eq__):
            if left_out:
                kept.append("…")
                continue
            part = "\n".join(part)
            size = part.count("\n") + 1
            places = range(at, max(at, len(lines) - size) + 1) if kept else [0]
            place = max(places, key=lambda i: likeness("\n".join(lines[i : i + size]), part))
            kept += lines[place : place + size]
            at = place + size
        return "\n".join(kept) + "\n"


def likeness(one: str, other: str) -> float:
    """Return a similarity from 0 to 1; numbers may differ."""
    return difflib.SequenceMatcher(None, re.sub(r"\d", "0", one), re.sub(r"\d", "0", other)).ratio()


def blocks(text: str) -> Iterator[tuple[int, int, list[Step]]]:
    """Yield the start and end of each console block's body, and its steps."""
    for found in re.finditer(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        steps: list[Step] = []
        for line in found.group(1).splitlines():
            if line.startswith("$ "):
                steps.append(Step(line[2:], []))
            else:
                steps[-1].shown.append(line)
        yield found.start(1), found.end(1), steps


def sandbox(folder: Path) -> Path:
    """Make a folder that looks like the checkout to a reader: jobs, and room for outputs."""
    for name in ("jobs", "preference_space", "prompts", "docs"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def run(command: str, folder: Path) -> str:
    """Return the standard output of a command."""
    path = os.pathsep.join([fork_server.in_shell(), str(Path(sys.executable).parent), os.environ["PATH"]])
    environ = {"PATH": path, "HOME": str(folder), "COLUMNS": "100", "LANG": "C.UTF-8"}
    if re.fullmatch(r"edgen [\w./: =-]+", command):  # nothing in it is for the shell
        return fork_server.run(*command.split()[1:], cwd=folder, env=environ).stdout
    done = subprocess.run(
        command, shell=True, cwd=folder, capture_output=True, text=True, timeout=180, env=environ
    )
    return done.stdout


def rewrite(text: str) -> str:
    """Return a document with every output updated, and the same parts left out."""
    pieces, position = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = sandbox(Path(name))
        for start, end, steps in blocks(text):
            body = ""
            for step in steps:
                output = run(step.command, folder)
                shown = "\n".join(step.shown) + "\n" if step.shown else ""
                body += f"$ {step.command}\n" + (shown if step.matches(output) else step.renewed(output))
            pieces += [text[position:start], body]
            position = end
    return "".join(pieces) + text[position:]


if __name__ == "__main__":
    for document in RUN_BY_BLOCK:
        document.write_text(rewrite(document.read_text()))

"""Trees of commits, each with the environment that runs its code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from bench.measure import ROOT


def find_commit(name: str) -> str:
    """Return the full id of a commit; exit with a sentence if it does not exist."""
    found = _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if found.returncode:
        raise SystemExit(f"bench: there is no commit {name!r} in {ROOT}; `git log` lists them.")
    return found.stdout.decode().strip()


def extract(commit: str, folder: Path) -> None:
    """Write the files of a commit to a new folder."""
    archive = folder.with_suffix(".tar")
    if (made := _git("archive", "--output", str(archive), commit)).returncode:
        raise SystemExit(f"bench: git archive {commit} failed: {made.stderr.decode().strip()}")
    shutil.unpack_archive(archive, folder, filter="data")
    archive.unlink()


def write_entry_points(tree: Path, folder: Path) -> None:
    """Write the metadata that installing a tree would write.

    A tree's entry points may differ from the installed ones.
    """
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project.get("version") or _read_version(tree)
    info = folder / f"{project['name'].replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {project['name']}\nVersion: {version}\n")
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    text = "\n\n".join(
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())])
        for group, entries in groups.items()
    )
    (info / "entry_points.txt").write_text(text + "\n")


def _read_version(tree: Path) -> str:
    for path in sorted((tree / "edgen").rglob("version.py")):
        if found := re.search(r'^__version__ = "(.+)"', path.read_text(encoding="utf-8"), re.MULTILINE):
            return found[1]
    return "0"


def environment(tree: Path, entry_points: Path) -> dict[str, str]:
    """Return the variables with which this Python runs the code of a tree."""
    kept = ("PATH", "HOME", "TMPDIR", "PYTHONPYCACHEPREFIX")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "PYTHONPATH": f"{entry_points}{os.pathsep}{tree}",
        "COLUMNS": "110",
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "TZ": "UTC",
    }


def python(*arguments: str, tree: Path, entry_points: Path, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """Run this Python with the code of a tree; `-P` keeps the current folder off its path."""
    return subprocess.run(
        [sys.executable, "-P", *arguments], env=environment(tree, entry_points), cwd=cwd, check=False
    )


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=False)

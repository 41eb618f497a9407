"""Where the files that ship with edgen are: in the installed package, or in the checkout.

A bare name in a job means a shipped file; anything that looks like a path means the user's own.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Literal

Folder = Literal[
    "prompts", "preference_space", "label_sets", "validators", "jobs", "machines", "questionnaires"
]

_PACKAGE = Path(__file__).resolve().parents[1]
_SUFFIX: dict[Folder, str] = {
    "prompts": ".j2",
    "preference_space": ".yaml",
    "label_sets": ".yaml",
    "validators": ".schema.json",
    "jobs": ".yaml",
    "machines": "",  # a folder each
    "questionnaires": ".yaml",
}


def folder(name: Folder) -> Path:
    """The shipped folder of that name."""
    packaged = _PACKAGE / "_data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name


def shipped(name: Folder) -> list[str]:
    """The names that a job may use for files of this folder, sorted."""
    suffix = _SUFFIX[name]
    return sorted(
        p.name.removesuffix(suffix) for p in folder(name).glob(f"*{suffix}") if suffix or p.is_dir()
    )


def find(name: Folder, reference: str, base: Path | None = None) -> Path:
    """The file that `reference` means: shipped if it is a bare name, else relative to `base`. A reference is a path if
    it has a separator or the folder's suffix. The file need not exist."""
    suffix = _SUFFIX[name]
    if (
        "/" in reference
        or "\\" in reference
        or (suffix and reference.endswith(suffix))
        or reference in ("", ".", "..")
    ):
        path = Path(reference)
        with contextlib.suppress(RuntimeError):  # ~nobody: there will be no such file
            path = path.expanduser()
        return path if path.is_absolute() or base is None else base / path
    return folder(name) / f"{reference}{suffix}"

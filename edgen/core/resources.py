"""Locations of the files that ship with edgen: in the installed package, or in the checkout.

In a job, a bare name means a shipped file; a path means the user's own. Files of a domain (edgen/domains/)
are in a subfolder of its name: `NAME_student` is prompts/NAME/NAME_student.j2.

`cache_file` is in the user's cache folder, for notes that only save time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from edgen.core import registry
from edgen.core.errors import FileError

Folder = str  # a key of _SUFFIX, or the name of a kind that a domain declares


@dataclass(frozen=True)
class FolderKind:
    """A kind of folders that jobs name, declared by a domain. `name`: the shipped folder that holds them;
    `inside`: the file that each of them has, YAML with a `name` and a `description`; `called`: the noun for
    one of them; `error`: the error about an unusable one."""

    name: str
    inside: str
    called: str
    error: type[FileError]


_PACKAGE = Path(__file__).resolve().parents[1]
_SUFFIX = {
    "prompts": ".j2",
    "preference_space": ".yaml",
    "label_sets": ".yaml",
    "validators": ".schema.json",
    "jobs": ".yaml",
    "questionnaires": ".yaml",
}


def find_folder_kind(name: Folder) -> FolderKind:
    """Return a kind of folders. Raises PluginError for an unknown one."""
    found: FolderKind = registry.find("folder_kind", name)
    return found


def _find_ending(name: Folder) -> tuple[str, str]:
    """Return the suffix of a kind's files; for a kind of folders, none and the file in each."""
    suffix = _SUFFIX.get(name)
    return (suffix, "") if suffix is not None else ("", find_folder_kind(name).inside)


def find_folder(name: Folder) -> Path:
    """Return the shipped folder of that name."""
    packaged = _PACKAGE / "_data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name


def list_shipped(name: Folder) -> list[str]:
    """Return the names that a job may use for files of this folder, sorted."""
    return sorted(find_shipped_files(name))


def find_shipped_files(name: Folder) -> dict[str, Path]:
    """Return the shipped files of this folder, by the names that a job may use; for a kind of folders, the
    file `inside` each."""
    (suffix, inside), top = _find_ending(name), find_folder(name)
    found = [one for pattern in ("", "*/") for one in top.glob(f"{pattern}*{suffix or '/' + inside}")]
    return {one.name.removesuffix(suffix) if suffix else one.parent.name: one for one in found}


def find(name: Folder, reference: str, base: Path | None = None) -> Path:
    """Return the file that `reference` means: shipped if it is a bare name, else relative to `base`.

    A reference is a path if it has a separator or the folder's suffix. The file need not exist.
    """
    if not _is_path(name, reference):
        return _find_shipped(name, reference)
    path = Path(reference)
    with contextlib.suppress(RuntimeError):  # ~nobody: there will be no such file
        path = path.expanduser()
    return path if path.is_absolute() or base is None else base / path


def is_shipped(name: Folder, path: Path) -> bool:
    """Return whether `find` gives this path for a bare name. The file need not exist."""
    suffix = _find_ending(name)[0]
    own = path.name.removesuffix(suffix)
    return path.name.endswith(suffix) and not _is_path(name, own) and path == _find_shipped(name, own)


def _is_path(name: Folder, reference: str) -> bool:
    suffix = _find_ending(name)[0]
    ends = bool(suffix) and reference.endswith(suffix)
    return "/" in reference or "\\" in reference or ends or reference in ("", ".", "..")


def _find_shipped(name: Folder, reference: str) -> Path:
    """Return the file of this name in the shipped folder or one of its subfolders; if it is missing, its path
    in the folder."""
    top, (suffix, inside) = find_folder(name), _find_ending(name)
    path = top / f"{reference}{suffix}"
    if (path / inside).exists() or not top.is_dir():
        return path
    below = (one / path.name for one in sorted(top.iterdir()) if one.is_dir())
    return next((one for one in below if (one / inside).exists()), path)


def cache_file(name: str, environ: Mapping[str, str]) -> Path | None:
    """Return the file of that name in the user's cache folder, by XDG's rules; None if there is no home."""
    folder = environ.get("XDG_CACHE_HOME", "")
    if Path(folder).is_absolute():  # ignore relative paths
        return Path(folder) / "edgen" / name
    with contextlib.suppress(RuntimeError):
        return Path.home() / ".cache" / "edgen" / name
    return None

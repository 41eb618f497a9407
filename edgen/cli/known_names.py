"""The names that jobs and commands can use: shipped files, the user's own files, and plugins.

Nothing is loaded to list names, so that a shell can complete them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from edgen.core import registry, resources
from edgen.core.errors import EdgenError
from edgen.core.space_layouts import make_space_mark

FileKind = str  # a key of _FILES, or the name of a kind of folders that a domain declares
PLUGIN_KINDS = ("formats", "measures", "providers", "protocols", "families", "askers")
"""Kinds of objects from packages that can be listed, as their groups of entry points name them."""
_MOST = 1_000  # files of a folder that are looked at
_HEAD = 65_536  # bytes of a file that are looked at


class _Files(NamedTuple):
    """The shipped and the usual folders of a kind of file, and a pattern for the line that marks such a
    file."""

    shipped: resources.Folder
    folders: tuple[str, ...]
    glob: str
    mark: Callable[[], str]
    by_path: bool = False  # commands also take shipped files by their paths


_YAML = "*.y*ml"
_FILES: Mapping[FileKind, _Files] = {
    "jobs": _Files("jobs", (".", "jobs"), _YAML, lambda: r"^(space|backends|protocol):", by_path=True),
    "spaces": _Files("preference_space", (".", "preference_space"), _YAML, make_space_mark),
    "label-sets": _Files("label_sets", (".", "label_sets"), _YAML, lambda: r"^labels:"),
}


def list_file_kinds() -> list[FileKind]:
    """Return the kinds of files and folders that can be listed."""
    return [*_FILES, *registry.list_names("folder_kind")]


def _list_files(kind: FileKind) -> _Files:
    if kind in _FILES:
        return _FILES[kind]
    inside = resources.find_folder_kind(kind).inside
    return _Files(kind, (".", kind), f"*/{inside}", lambda: r"^name:")


class KnownName(NamedTuple):
    """A name with a sentence about it, empty without one, and its file or package."""

    name: str
    summary: str
    origin: str


def list_files(kind: FileKind) -> list[KnownName]:
    """Return the files of a kind: shipped ones by name, then local ones by path."""
    return [
        KnownName(name, _describe(kind, name), str(path)) for name, path in find_known_files(kind).items()
    ]


def find_known_files(kind: FileKind) -> dict[str, Path]:
    """Return the files of a kind by the names that commands and jobs take: shipped ones, then local ones."""
    about = _list_files(kind)
    found = {name: resources.find(about.shipped, name) for name in resources.list_shipped(about.shipped)}
    if about.by_path:
        found = {os.path.relpath(path): path for path in found.values()}
    shipped = {path.resolve() for path in found.values()}
    own = {name: Path(name) for name in find_own_files(kind) if Path(name).resolve() not in shipped}
    return found | own


def list_plugins(kind: str) -> list[KnownName]:
    """Return every object of a kind from packages, with its summary or why it is unusable."""
    wanted = registry.GROUPS[f"edgen.{kind}"]
    found = (plugin for plugin in registry.list_plugins() if plugin.kind == wanted)
    return [KnownName(plugin.name, _describe_plugin(plugin), plugin.origin) for plugin in found]


def list_plugin_names(kind: str) -> list[str]:
    """Return the names of plugins of a kind."""
    return registry.list_names(registry.GROUPS[f"edgen.{kind}"])


def find_own_files(kind: FileKind, folders: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the files of a kind (or the folders) in the usual folders, or in these `folders`."""
    about = _list_files(kind)
    for folder in folders or about.folders:
        with contextlib.suppress(OSError):
            for path in sorted(itertools.islice(Path(folder).glob(about.glob), _MOST)):
                if is_file_of(kind, path):
                    yield str(path if about.glob == _YAML else path.parent)


def is_file_of(kind: FileKind, path: Path) -> bool:
    """Return whether a YAML file looks like one of this kind. It need not be valid."""
    try:
        with path.open("rb") as file:
            return re.search(_list_files(kind).mark().encode(), file.read(_HEAD), re.MULTILINE) is not None
    except OSError:
        return False


def _describe(kind: FileKind, reference: str) -> str:
    """Return a sentence about a file, or its problem if it is unreadable."""
    try:
        return _DESCRIBE[kind](reference) if kind in _DESCRIBE else _describe_folder(kind, reference)
    except EdgenError as error:
        return f"ERROR: {' '.join(str(error).split())}"


def _describe_job(reference: str) -> str:
    """Return the first sentence of the comment at the head of a job file."""
    with resources.find("jobs", reference).open(encoding="utf-8", errors="replace") as file:
        head = itertools.takewhile(lambda line: line.startswith("#"), file)
        lines = (line.lstrip("# ").strip() for line in head if "yaml-language-server" not in line)
        return re.split(r"(?<=\.) ", " ".join(lines))[0]


def _describe_space(reference: str) -> str:
    from edgen.space import load_space

    space = load_space(resources.find("preference_space", reference))
    return space.description or f"Dimensions: {', '.join(space.names)}."


def _describe_label_set(reference: str) -> str:
    from edgen.config.label_set import find_label_set

    return ", ".join(label.name for label in find_label_set(reference).labels)


def _describe_folder(kind: FileKind, reference: str) -> str:
    from edgen.core.yaml_values import read_text, read_yaml

    about = resources.find_folder_kind(kind)
    path = resources.find(kind, reference) / about.inside
    said = read_yaml(read_text(path, about.error), str(path), about.error)
    return str(said.get("description") or "") if isinstance(said, dict) else ""


_DESCRIBE: Mapping[FileKind, Callable[[str], str]] = {
    "jobs": _describe_job,
    "spaces": _describe_space,
    "label-sets": _describe_label_set,
}


def _describe_plugin(plugin: registry.Plugin) -> str:
    problem = registry.explain_problem(plugin)
    if problem is not None:
        return f"ERROR: {problem}"
    found = registry.find(plugin.kind, plugin.name)
    return getattr(found, "summary", "") or getattr(found, "definition", "")

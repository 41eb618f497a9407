"""What can be added to edgen from outside: five kinds of objects, found by the entry points of installed packages.

An entry point `name = module:object` in a kind's group names an object whose `name` is the same. edgen's own objects
are registered in the same way. Metadata is read when something is asked for, and an object is loaded when it is asked
for by its name, so a package that cannot be loaded stops nobody who does not use it.

The metadata is read here, and not by importlib.metadata, which takes 50 ms of every start.
"""

from __future__ import annotations

import functools
import importlib
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from edgen.core.errors import InputError
from edgen.core.version import DISTRIBUTION as DISTRIBUTION
from edgen.core.version import __version__
from edgen.core.yaml_values import nearest

Kind = Literal["provider", "protocol", "family", "format", "measure"]
KINDS: tuple[Kind, ...] = get_args(Kind)
GROUPS: dict[str, Kind] = {
    "edgen.providers": "provider",
    "edgen.protocols": "protocol",
    "edgen.families": "family",
    "edgen.formats": "format",
    "edgen.measures": "measure",
}
_NEEDED = re.compile(
    rf"{DISTRIBUTION.replace('-', '[-_.]')}(?![\w.-])\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?", re.I
)
_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|~=|>|<)\s*v?(\d+(?:\.\d+)*)(\.\*)?\s*")


class PluginError(InputError):
    """A plugin that is not there, or that cannot be used."""


class Plugin(NamedTuple):
    """One entry point. `object` is `module:name`; `requires` are the requirements of the package that brings it."""

    kind: Kind
    name: str
    object: str
    package: str
    version: str
    requires: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """The package and its version."""
        return f"{self.package} {self.version}"


def plugins() -> list[Plugin]:
    """Every entry point of the five kinds, by kind and name, whether it can be loaded or not."""
    return [plugin for found in _by_name(tuple(sys.path)).values() for plugin in found]


def names(kind: Kind) -> list[str]:
    """The names that the kind has, in alphabetical order."""
    return [*_names(kind, tuple(sys.path))]


def find(kind: Kind, name: str) -> Any:
    """The object of that kind and name, loaded. Raises PluginError."""
    return _find(kind, name, tuple(sys.path))


def find_all(kind: Kind) -> list[Any]:
    """Every object of the kind that can be used, by name; of the others a warning tells why they cannot."""
    found = []
    for name in names(kind):
        try:
            found.append(find(kind, name))
        except PluginError as error:
            logging.getLogger("edgen").warning("edgen: %s", error)
    return found


def problem(plugin: Plugin) -> str | None:
    """Why a plugin cannot be used, in a sentence; None if it can."""
    try:
        find(plugin.kind, plugin.name)
    except PluginError as error:
        return str(error)
    return None


@functools.cache
def _names(kind: Kind, path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for there, name in _by_name(path) if there == kind)


@functools.cache
def _find(kind: Kind, name: str, path: tuple[str, ...]) -> Any:
    found = _by_name(path).get((kind, name), [])
    if not found:
        own = "" if any(one.package == DISTRIBUTION for one in plugins()) else _NOT_INSTALLED
        raise PluginError(f"There is no {kind} {name!r}{nearest(name, names(kind))}.{own}")
    if len(found) > 1:
        brought = " and ".join(one.origin for one in found)
        raise PluginError(f"The {kind} {name!r} is brought by {brought}; uninstall all but one of them.")
    (plugin,) = found
    for needed in plugin.requires:
        if not _satisfies(needed):
            raise PluginError(
                f"The {kind} {name!r} of {plugin.origin} needs edgen {needed}, and this is {__version__}; "
                f"install another version of edgen or of {plugin.package}."
            )
    return _load(plugin)


_NOT_INSTALLED = " edgen's own entry points are missing: install edgen (again), as in `pip install -e .`."


def _load(plugin: Plugin) -> Any:
    module, _, attributes = plugin.object.partition(":")
    what = f"The {plugin.kind} {plugin.name!r} of {plugin.origin}"
    try:
        loaded = functools.reduce(getattr, attributes.split("."), importlib.import_module(module))
        name = loaded.name
    except (Exception, SystemExit) as error:  # a package may raise anything
        reason = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".: ")
        raise PluginError(
            f"{what} cannot be loaded ({reason}); update or uninstall {plugin.package}."
        ) from error
    if name != plugin.name:
        raise PluginError(f"{what} calls itself {name!r}; its entry point has to have the same name.")
    return loaded


def _satisfies(needed: str) -> bool:
    """Whether this version of edgen satisfies a version specifier; one that cannot be read is satisfied."""
    ours = _release(__version__)
    for clause in needed.split(","):
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            continue
        operator, theirs, prefix = match[1], _release(match[2]), match[3]
        length = len(theirs) if prefix else max(len(ours), len(theirs))
        one, other = _pad(ours, length), _pad(theirs, length)
        holds = {
            ">=": one >= other,
            "<=": one <= other,
            "==": one == other,
            "!=": one != other,
            ">": one > other,
            "<": one < other,
            "~=": one >= other and ours[: len(theirs) - 1] == theirs[:-1],
        }
        if not holds[operator]:
            return False
    return True


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.match(r"\d+(?:\.\d+)*", version)[0].split("."))  # type: ignore[index]


def _pad(release: tuple[int, ...], length: int) -> tuple[int, ...]:
    return (*release, *(0,) * (length - len(release)))[:length]


@functools.cache
def _by_name(path: tuple[str, ...]) -> dict[tuple[Kind, str], list[Plugin]]:
    found: dict[tuple[Kind, str], list[Plugin]] = {}
    for plugin in sorted(_scan(path), key=lambda one: (KINDS.index(one.kind), one.name, one.package)):
        found.setdefault((plugin.kind, plugin.name), []).append(plugin)
    return found


def _scan(path: tuple[str, ...]) -> Iterator[Plugin]:
    """The entry points of each installed package; of two of one name, the first on the path counts."""
    seen: set[str] = set()
    for folder in path:
        for file in sorted(Path(folder).glob("*.*-info/entry_points.txt")):
            entries = list(_entries(file))
            if not entries:
                continue
            headers = _headers(file.parent)
            package = re.sub(r"[-_.]+", "-", headers.get("Name", [file.parent.stem])[0]).lower()
            if package in seen:
                continue
            seen.add(package)
            needed = tuple(
                match[1].strip()
                for line in headers.get("Requires-Dist", [])
                if (match := _NEEDED.match(line)) and "extra" not in line
            )
            version = headers.get("Version", ["?"])[0]
            yield from (Plugin(kind, name, value, package, version, needed) for kind, name, value in entries)


def _entries(file: Path) -> Iterator[tuple[Kind, str, str]]:
    """(kind, name, object) of each entry point that is edgen's."""
    text = _text(file)
    if "[edgen." not in text:
        return
    kind: Kind | None = None
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            kind = GROUPS.get(line.strip("[] "))
        elif kind is not None and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield kind, name.strip(), value.split("[")[0].strip()


def _headers(folder: Path) -> dict[str, list[str]]:
    text = _text(folder / "METADATA") or _text(folder / "PKG-INFO")
    headers: dict[str, list[str]] = {}
    for line in text.split("\n\n", 1)[0].splitlines():
        key, colon, value = line.partition(":")
        if colon:
            headers.setdefault(key, []).append(value.strip())
    return headers


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""

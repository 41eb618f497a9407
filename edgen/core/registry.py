"""Extension points: five kinds of objects, found through the entry points of installed packages. `add`
registers an object for this process, such as a user's function as a measure.

An entry point `name = module:object` in a kind's group names an object whose `name` is the same. edgen's own
objects are registered in the same way. Metadata is read on demand, and an object is loaded by name, so a
broken package affects only its users.

A package's metadata (`*.dist-info`, `*.egg-info`) counts only where an installer or the user put it: in a
site folder, in a folder that a `.pth` file of a site folder names (an editable install), in an absolute
folder of PYTHONPATH, or next to edgen itself. Python also searches the current folder (`python -m edgen`,
notebooks) and a script's own. Those may hold anything, such as an unpacked download, so metadata in them is
not trusted. It is read here, not by importlib.metadata, which takes 50 ms of every start.

The base class of a kind holds what every object of the kind needs. Everything else is in optional parts:
mixin classes, one per purpose, with a default for each of their names. An object has a part if its class
derives from it: `class Notes(RecordContents, Family)`. edgen asks for a part by its class:
`part_of(family, RecordContents).scenes(space)`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, cast, get_args

from edgen.core import working_directory
from edgen.core.errors import InputError
from edgen.core.plugin_checks import find_flaw, find_place, satisfies, warn_of_group
from edgen.core.system import is_from_signal, split_path
from edgen.core.text import describe_error
from edgen.core.version import DISTRIBUTION as DISTRIBUTION
from edgen.core.version import __version__

Kind = Literal[
    "provider", "protocol", "family", "format", "measure",
    "reader", "space_section", "space_layout", "folder_kind", "command", "space_command",
    "function", "asker",
]  # fmt: skip
KINDS: tuple[Kind, ...] = ("provider", "protocol", "family", "format", "measure")
"""The kinds described in plugins.md. The others let edgen's own domains read data sets, and extend spaces,
the folders that jobs name, the command line and `import edgen`."""
GROUPS: dict[str, Kind] = {f"edgen.{kind}s".replace("ys", "ies"): kind for kind in get_args(Kind)}
"""The kinds by their groups of entry points: `edgen.providers`, `edgen.families` and so on."""
_ORDER: tuple[Kind, ...] = get_args(Kind)
_NEEDED = re.compile(
    rf"{DISTRIBUTION.replace('-', '[-_.]')}(?![\w.-])\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?", re.I
)
_NAME = re.compile(r"(?!\.)[^/\\\x00-\x1f\x7f]{1,100}")
_ABSTRACT = re.compile(
    r"abstract class .* abstract methods? (.+)$"
)  # Python's message on a type that cannot be instantiated


class PluginError(InputError):
    """A missing or unusable plugin."""


class Plugin(NamedTuple):
    """One entry point."""

    kind: Kind  # kind of plugin
    name: str  # as commands and jobs know it
    object: str  # `module:name`
    package: str  # distribution that holds it
    version: str  # of the package
    requires: tuple[str, ...] = ()  # requirements of the package

    @property
    def origin(self) -> str:
        """The package and its version."""
        return f"{self.package} {self.version}"

    @property
    def title(self) -> str:
        """Its kind, name and package, as the beginning of a sentence."""
        return f"The {self.kind} {self.name!r} of {self.origin}"


def list_plugins() -> list[Plugin]:
    """Return every entry point of the five kinds, by kind and name, loadable or not."""
    return [plugin for plugin in list_all_plugins() if plugin.kind in KINDS]


def list_all_plugins() -> list[Plugin]:
    """Return every entry point of any kind, by kind and name, loadable or not."""
    return [plugin for found in _index_plugins(tuple(sys.path)).values() for plugin in found]


def list_foreign_plugins() -> list[Plugin]:
    """Return every entry point of any kind that is not edgen's own."""
    return [plugin for plugin in list_all_plugins() if plugin.package != DISTRIBUTION]


def find_skipped_plugins() -> list[tuple[Plugin, Path]]:
    """Return the ignored entry points with their folders, which are on the path but hold no installed
    packages."""
    return [(plugin, folder) for folder in split_path(sys.path)[1] for plugin in _scan([folder])]


def list_names(kind: Kind) -> list[str]:
    """Return the names of the kind, in alphabetical order; those added by this process last."""
    added = [name for there, name in _added if there == kind]
    return [*_find_names(kind, tuple(sys.path)), *added]


def find(kind: Kind, name: str) -> Any:
    """Return the loaded object of that kind and name. Raises PluginError."""
    if (kind, name) in _added:
        return _added[kind, name]
    return _find(kind, name, tuple(sys.path))


_added: dict[tuple[Kind, str], Any] = {}


def add(kind: Kind, name: str, added: Any) -> None:
    """Register an object of a kind for this process, replacing an earlier one of its name."""
    _added[kind, name] = added


@contextlib.contextmanager
def register_temporarily(kind: Kind, name: str, added: Any) -> Iterator[None]:
    """Register an object of a kind for this process until the body ends."""
    before = _added.get((kind, name))
    _added[kind, name] = added
    try:
        yield
    finally:
        del _added[kind, name]
        if before is not None:
            _added[kind, name] = before


def find_plugin(kind: Kind, name: str) -> Plugin | None:
    """Return the entry point of another package's object; None for edgen's own, and for added ones."""
    if (kind, name) in _added:
        return None
    found = _index_plugins(tuple(sys.path)).get((kind, name), ())
    return None if not found or any(one.package == DISTRIBUTION for one in found) else found[0]


def is_added(kind: Kind, name: str) -> bool:
    """Return whether an object was added by this process instead of a plugin."""
    return (kind, name) in _added


def find_all(kind: Kind, without: Collection[str] = ()) -> list[Any]:
    """Return every usable object of the kind, by name; warn of the others. Those named in `without` are not
    loaded."""
    found = []
    for name in list_names(kind):
        if name in without:
            continue
        try:
            found.append(find(kind, name))
        except PluginError as error:
            _warn(str(error))
    for plugin in find_shadowed_plugins(kind):
        _warn(str(explain_problem(plugin)))
    return found


def _warn(problem: str) -> None:
    """Warn of a problem of a plugin, once for each command."""
    if problem not in warned:
        logging.getLogger("edgen").warning("edgen: %s", problem)
    warned.add(problem)


def find_shadowed_plugins(kind: Kind) -> list[Plugin]:
    """Return the plugins of a kind that have the name of one of edgen's own objects. They are not used."""
    return [
        plugin
        for (there, _), found in _index_plugins(tuple(sys.path)).items()
        if there == kind and any(one.package == DISTRIBUTION for one in found)
        for plugin in found
        if plugin.package != DISTRIBUTION
    ]


warned: set[str] = set()
"""The problems of plugins of which this command has warned. It need not end with one of them again."""


def explain_problem(plugin: Plugin) -> str | None:
    """Explain in a sentence why a plugin is unusable; None if it is usable."""
    if plugin in find_shadowed_plugins(plugin.kind):
        return (
            f"{plugin.title} has the name of edgen's own {plugin.kind}, which is used; rename the plugin's."
        )
    try:
        find(plugin.kind, plugin.name)
    except PluginError as error:
        return str(error)
    return None


@functools.cache
def _find_names(kind: Kind, path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for there, name in _index_plugins(path) if there == kind)


@functools.cache
def _find(kind: Kind, name: str, path: tuple[str, ...]) -> Any:
    found = _index_plugins(path).get((kind, name), [])
    found = [one for one in found if one.package == DISTRIBUTION] or found
    if not found:
        from edgen.core.yaml_values import suggest_name  # imports yaml, which shell completion does not need

        own = "" if any(one.package == DISTRIBUTION for one in list_plugins()) else _NOT_INSTALLED
        raise PluginError(f"There is no {kind} {name!r}{suggest_name(name, list_names(kind))}.{own}")
    if len(found) > 1:
        brought = " and ".join(one.origin for one in found)
        raise PluginError(f"The {kind} {name!r} is provided by {brought}; uninstall all but one of them.")
    (plugin,) = found
    for needed in plugin.requires:
        if not satisfies(__version__, needed):
            raise PluginError(
                f"{plugin.title} needs edgen {needed}, and this is {__version__}; "
                f"install another version of edgen or of {plugin.package}."
            )
    return _load(plugin)


_NOT_INSTALLED = " edgen's own entry points are missing: install edgen (again), as in `pip install -e .`."


def _load(plugin: Plugin) -> Any:
    module, _, attributes = (part.strip() for part in plugin.object.partition(":"))
    what = plugin.title
    if not attributes:
        raise PluginError(
            f"{what} has the entry point {plugin.object!r}, which names no object: MODULE:OBJECT."
        )
    if plugin.package != DISTRIBUTION:
        if not _NAME.fullmatch(plugin.name):
            raise PluginError(
                f"{what} has a name that no file can have; use letters, digits, `_`, `-` and `.`."
            )
        working_directory.keep_from(module)
    streams = sys.stdin, sys.stdout, sys.stderr
    try:
        loaded = functools.reduce(getattr, attributes.split("."), importlib.import_module(module))
        flaw = None if plugin.package == DISTRIBUTION else find_flaw(plugin.kind, loaded)
        name = plugin.name if flaw else loaded.__name__ if plugin.kind == "function" else loaded.name
    except BaseException as error:  # a package may raise anything
        if is_from_signal(error):
            raise
        if type(error) is TypeError and (missing := _ABSTRACT.search(str(error))):
            methods = ", ".join(f"`{one}`" for one in re.findall(r"\w+", missing[1]))
            raise PluginError(
                f"{what} lacks {methods}, which every {plugin.kind} has to define; update or uninstall "
                f"{plugin.package}."
            ) from error
        reason = f"({describe_error(error)}){find_place(error, module)}"
        raise PluginError(
            f"{what} cannot be loaded {reason}; update or uninstall {plugin.package}."
        ) from error
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams  # a package may have replaced them
    if flaw is not None:
        raise PluginError(f"{what} {flaw}. Correct this in {plugin.package}, or update or uninstall it.")
    if name != plugin.name:
        raise PluginError(f"{what} calls itself {name!r}; its entry point has to have the same name.")
    return loaded


P = TypeVar("P")

_defaults: dict[type, Any] = {}


def part_of(kind: object, part: type[P]) -> P:
    """Return the object itself if it has the part, else the part's defaults: one shared instance.

    A part is created without arguments. Its defaults may use each other, but nothing of the object.
    """
    if isinstance(kind, part):
        return kind
    if part not in _defaults:
        _defaults.setdefault(part, part())
    return cast(P, _defaults[part])


@functools.cache
def _index_plugins(path: tuple[str, ...]) -> dict[tuple[Kind, str], list[Plugin]]:
    found: dict[tuple[Kind, str], list[Plugin]] = {}
    for plugin in sorted(
        _scan(split_path(path)[0]), key=lambda one: (_ORDER.index(one.kind), one.name, one.package)
    ):
        found.setdefault((plugin.kind, plugin.name), []).append(plugin)
    return found


def _scan(folders: Iterable[Path]) -> Iterator[Plugin]:
    """Yield the entry points of each package in the folders; of two packages with one name, the first
    counts."""
    seen: set[str] = set()
    for folder in folders:
        for file in sorted(folder.glob("*.*-info/entry_points.txt")):
            entries = list(_list_entries(file))
            if not entries:
                continue
            headers = read_headers(file.parent)
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


def _list_entries(file: Path) -> Iterator[tuple[Kind, str, str]]:
    """Yield (kind, name, object) of each entry point in one of edgen's groups. Warn of a file that cannot be
    read."""
    text, problem = _read_text(file)
    if problem is not None and ("[edgen." in text.replace("\0", "") or not text):
        logging.getLogger("edgen").warning(
            "edgen: %s: this file of entry points cannot be read (%s), so its plugins are missing; install "
            "the package again.",
            file,
            problem,
        )
    if problem is not None or "[edgen." not in text:
        return
    kind: Kind | None = None
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line.strip("[] ")
            kind = GROUPS.get(group)
            if kind is None and group.startswith("edgen"):
                warn_of_group(group, GROUPS, file)
        elif kind is not None and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield kind, name.strip(), value.split("[")[0].strip()


def read_headers(folder: Path) -> dict[str, list[str]]:
    """Return the headers of a distribution's metadata."""
    text = _read_text(folder / "METADATA")[0] or _read_text(folder / "PKG-INFO")[0]
    headers: dict[str, list[str]] = {}
    for line in text.split("\n\n", 1)[0].splitlines():
        key, colon, value = line.partition(":")
        if colon:
            headers.setdefault(key, []).append(value.strip())
    return headers


def _read_text(file: Path) -> tuple[str, str | None]:
    """Return the part of a file that is UTF-8, and the problem of the file; None without one."""
    try:
        data = file.read_bytes()
    except OSError as error:
        return "", error.strerror
    text = data.decode("utf-8-sig", errors="replace")
    return text, "it is not UTF-8" if "\ufffd" in text or "\0" in text else None

"""Extension points: five kinds of objects, found through the entry points of installed packages. `add`
registers an object for this process, such as a user's function as a measure.

An entry point `name = module:object` in a kind's group names an object whose `name` is the same. edgen's own
objects are registered in the same way. Metadata is read on demand, and an object is loaded by name, so a
broken package affects only its users. Only installed packages count: metadata in the current folder is
ignored (see `edgen.core.installed`).

The metadata is read here, not by importlib.metadata, which takes 50 ms of every start.

An answer kind names what a template asks for; protocols declare theirs.
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
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from edgen.core import registry
from edgen.core.errors import InputError
from edgen.core.installed import split_path
from edgen.core.plugin_checks import find_flaw
from edgen.core.version import DISTRIBUTION as DISTRIBUTION
from edgen.core.version import __version__

Kind = Literal[
    "provider", "protocol", "family", "format", "measure",
    "reader", "space_section", "space_layout", "folder_kind", "command", "space_command",
    "function",
]  # fmt: skip
KINDS: tuple[Kind, ...] = ("provider", "protocol", "family", "format", "measure")
"""The kinds described in plugins.md. The others let edgen's own domains read data sets, and extend spaces,
the folders that jobs name, the command line and `import edgen`."""
GROUPS: dict[str, Kind] = {
    "edgen.providers": "provider",
    "edgen.protocols": "protocol",
    "edgen.families": "family",
    "edgen.formats": "format",
    "edgen.measures": "measure",
    "edgen.readers": "reader",
    "edgen.space_sections": "space_section",
    "edgen.space_layouts": "space_layout",
    "edgen.folder_kinds": "folder_kind",
    "edgen.commands": "command",
    "edgen.space_commands": "space_command",
    "edgen.functions": "function",
}
_ORDER: tuple[Kind, ...] = get_args(Kind)
_NEEDED = re.compile(
    rf"{DISTRIBUTION.replace('-', '[-_.]')}(?![\w.-])\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?", re.I
)
_ABSTRACT = re.compile(
    r"abstract class .* abstract methods? (.+)$"
)  # Python's message on a type that cannot be instantiated
_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|~=|>|<)\s*v?(\d+(?:\.\d+)*)(\.\*)?\s*")


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


def plugins() -> list[Plugin]:
    """Return every entry point of the five kinds, by kind and name, loadable or not."""
    return [plugin for plugin in every_plugin() if plugin.kind in KINDS]


def every_plugin() -> list[Plugin]:
    """Return every entry point of any kind, by kind and name, loadable or not."""
    return [plugin for found in _index_plugins(tuple(sys.path)).values() for plugin in found]


def find_skipped_plugins() -> list[tuple[Plugin, Path]]:
    """Return the ignored entry points with their folders, which are on the path but hold no installed
    packages."""
    return [(plugin, folder) for folder in split_path(sys.path)[1] for plugin in _scan([folder])]


def names(kind: Kind) -> list[str]:
    """Return the names of the kind, in alphabetical order; those added by this process last."""
    added = [name for there, name in _added if there == kind]
    return [*_names(kind, tuple(sys.path)), *added]


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
def lent(kind: Kind, name: str, given: Any) -> Iterator[None]:
    """Have this process find an object of a kind meanwhile."""
    before = _added.get((kind, name))
    _added[kind, name] = given
    try:
        yield
    finally:
        del _added[kind, name]
        if before is not None:
            _added[kind, name] = before


def plugin_of(kind: Kind, name: str) -> Plugin | None:
    """Return the entry point of another package's object; None for edgen's own, and for added ones."""
    if (kind, name) in _added:
        return None
    for plugin in _index_plugins(tuple(sys.path)).get((kind, name), ()):
        if plugin.package != DISTRIBUTION:
            return plugin
    return None


def is_added(kind: Kind, name: str) -> bool:
    """Return whether an object was added by this process instead of a plugin."""
    return (kind, name) in _added


def find_all(kind: Kind, without: Collection[str] = ()) -> list[Any]:
    """Return every usable object of the kind, by name; warn of the others. Those named in `without` are not
    loaded."""
    found = []
    for name in names(kind):
        if name in without:
            continue
        try:
            found.append(find(kind, name))
        except PluginError as error:
            logging.getLogger("edgen").warning("edgen: %s", error)
    return found


def problem(plugin: Plugin) -> str | None:
    """Explain in a sentence why a plugin is unusable; None if it is usable."""
    try:
        find(plugin.kind, plugin.name)
    except PluginError as error:
        return str(error)
    return None


@functools.cache
def _names(kind: Kind, path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for there, name in _index_plugins(path) if there == kind)


@functools.cache
def _find(kind: Kind, name: str, path: tuple[str, ...]) -> Any:
    found = _index_plugins(path).get((kind, name), [])
    if not found:
        from edgen.core.yaml_values import suggest_name  # imports yaml, which shell completion does not need

        own = "" if any(one.package == DISTRIBUTION for one in plugins()) else _NOT_INSTALLED
        raise PluginError(f"There is no {kind} {name!r}{suggest_name(name, names(kind))}.{own}")
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
        flaw = None if plugin.package == DISTRIBUTION else find_flaw(plugin.kind, loaded)
        name = plugin.name if flaw else loaded.__name__ if plugin.kind == "function" else loaded.name
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a package may raise anything
        if isinstance(error, TypeError) and (missing := _ABSTRACT.search(str(error))):
            methods = ", ".join(f"`{one}`" for one in re.findall(r"\w+", missing[1]))
            raise PluginError(
                f"{what} lacks {methods}, which every {plugin.kind} has to define; update or uninstall "
                f"{plugin.package}."
            ) from error
        reason = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".: ")
        raise PluginError(
            f"{what} cannot be loaded ({reason}); update or uninstall {plugin.package}."
        ) from error
    if flaw is not None:
        raise PluginError(f"{what} {flaw}. Correct this in {plugin.package}, or update or uninstall it.")
    if name != plugin.name:
        raise PluginError(f"{what} calls itself {name!r}; its entry point has to have the same name.")
    return loaded


def _satisfies(needed: str) -> bool:
    """Return whether this version of edgen satisfies a version specifier; an unreadable one counts as
    satisfied."""
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
    """Yield (kind, name, object) of each entry point that is edgen's."""
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


class AnswerKind(msgspec.Struct, frozen=True):
    """A kind of answer."""

    name: str
    """Its name in templates."""
    says: str
    """The value read from an answer, or made from a text."""
    variables: tuple[str, ...]
    """Variables of its templates besides those of a scenario."""
    spoken: bool = False
    """Whether an answer holds turns: what roles of the space say."""
    of_scenario: bool = False
    """Whether its templates also have the variables of a scenario, those of layouts where the space is
    unknown."""


def answer_kinds() -> dict[str, AnswerKind]:
    """Return every kind by its name, those of whole conversations first. If two protocols share one, the
    first describes it, and its templates may use the variables of both."""
    protocols = []
    for name in registry.names("protocol"):
        try:
            protocols.append(registry.find("protocol", name))
        except registry.PluginError:  # `edgen list plugins` reports the reason
            continue
    found: dict[str, AnswerKind] = {}
    for protocol in sorted(protocols, key=lambda one: -one.precedence):
        for kind in protocol.answers:
            known = found.setdefault(kind.name, kind)
            if known is not kind:
                both = tuple(dict.fromkeys((*known.variables, *kind.variables)))
                spoken, of_scenario = known.spoken or kind.spoken, known.of_scenario or kind.of_scenario
                found[kind.name] = AnswerKind(kind.name, known.says, both, spoken, of_scenario)
    return found

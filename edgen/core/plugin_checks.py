"""Checks of an object that a package adds to edgen, made when it is loaded and by `edgen.testing`.

The module of each kind's base class has a function `list_flaws(object)` that yields what the kind requires
and the object lacks, each as a clause. `find_misplaced_names` is for its optional parts. The base is compared
by name, so nothing is imported that the object did not import itself.
"""

from __future__ import annotations

import importlib
import itertools
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from traceback import walk_tb
from typing import Any, get_type_hints

from edgen.core.text import describe_error, join_list, shorten

BASES: Mapping[str, tuple[str, str]] = {
    "provider": ("edgen.providers.base", "Provider"),
    "protocol": ("edgen.protocols.base", "Protocol"),
    "family": ("edgen.families.base", "Family"),
    "format": ("edgen.export.format", "Format"),
    "measure": ("edgen.evaluation.measure", "Measure"),
    "reader": ("edgen.families.reader", "DataSetReader"),
}
"""The module and the name of the base class of each kind that other packages add."""
_SHOWN = {"protocol": "ConversationProtocol", "reader": "readers.DataSetReader"}
"""The class of `edgen.plugin` that an author derives from, if not the base."""


def find_flaw(kind: str, loaded: Any) -> str | None:
    """Return why an object cannot be used as one of its kind, as a clause such as "has no `Config`"; None if
    it can. Raises the errors of the object's own attributes."""
    if kind in ("command", "space_command") and not callable(getattr(loaded, "command", None)):
        return "has no `command` that can be called"
    if kind not in BASES:
        return None
    module, base = BASES[kind]
    shown = f"edgen.plugin.{_SHOWN.get(kind, base)}"
    if isinstance(loaded, type):
        begins = f"is a class, not an object; write `OBJECT = {loaded.__name__}()`"
        return f"{begins} in its module, and OBJECT in its entry point"
    if (module, base) not in {(one.__module__, one.__qualname__) for one in type(loaded).__mro__}:
        return f"is of the class {type(loaded).__name__}, which is not derived from {shown}"
    flaws = importlib.import_module(module).list_flaws(loaded)
    return next(itertools.chain(flaws, find_unfit_methods(loaded)), None)


def find_unfit_methods(loaded: Any) -> Iterator[str]:
    """Yield a clause for each method of edgen's base classes that an object, or a class, defines in a form
    that edgen cannot call."""
    import inspect  # only plugins are checked

    kind = loaded if isinstance(loaded, type) else type(loaded)
    base = {
        name: function
        for one in reversed(kind.__mro__)
        if one.__module__.startswith("edgen.")
        for name, function in vars(one).items()
        if inspect.isfunction(function) and not name.startswith("_")
    }
    for name, function in base.items():
        if (own := getattr(kind, name, None)) is function:
            continue
        if not callable(found := getattr(loaded, name)):
            yield f"has `{name}` {shorten(repr(found), 80)}, where a method has to be"
        elif inspect.iscoroutinefunction(own) or inspect.isasyncgenfunction(own):
            if not inspect.iscoroutinefunction(function):
                yield f"has an asynchronous `{name}`; write `def {name}`, without `async`"
        elif wrong := _find_unfit_parameters(found, function, bound=kind is not loaded):
            yield f"has a method `{name}` that cannot be called as `{name}({wrong})`"


def _find_unfit_parameters(method: Any, function: Any, *, bound: bool) -> str | None:
    """Return the parameters of a base class's function if a method does not take all of its required ones;
    None if it does. `bound`: the method has its object."""
    import inspect  # only plugins are checked

    _, *parameters = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return None
    needed = [one for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    try:
        inspect.signature(method).bind(*(() if bound else (None,)), *needed)
    except TypeError:
        return ", ".join(one.name for one in needed)
    except ValueError:  # of code in C
        return None
    return None


def find_unfit_fields(
    struct: type, base: type | None = None, said: str = "a `Config`", holder: str = "no job can hold"
) -> Iterator[str]:
    """Yield a clause for a struct that other processes cannot import, and for each field whose default is not
    of the field's type, or has no form in JSON. A field of the `base` keeps the type that it has there.
    `said` and `holder` are words for the struct and for what cannot have such a value."""
    import msgspec  # only plugins are checked

    if "<locals>" in struct.__qualname__:
        name = struct.__qualname__
        yield (
            f"has {said} inside of a function ({name}), which other processes cannot import; define it "
            "outside"
        )
    try:
        fields = msgspec.structs.fields(struct)
        own, inherited = get_type_hints(struct), {} if base is None else get_type_hints(base)
    except Exception as error:  # noqa: BLE001 - a plugin may write any type
        yield f"has {said} whose types cannot be read ({describe_error(error)})"
        return
    for field in fields:
        made = field.default_factory is not msgspec.NODEFAULT
        default = field.default_factory() if made else field.default
        if default is msgspec.NODEFAULT:
            continue
        for type_ in (own[field.name], inherited.get(field.name, Any)):  # without their bounds
            try:
                msgspec.json.decode(msgspec.json.encode(default), type=type_)
            except Exception as error:  # noqa: BLE001 - values and types may be of any package
                shown = shorten(repr(default), 80)
                yield (
                    f"has {said} whose field `{field.name}` has the default {shown}, which {holder} "
                    f"({describe_error(error)})"
                )
                break


def find_place(error: BaseException, module: str) -> str:
    """Return the last line of a module's package that an error came through, as in " in FILE, line 5"; empty
    without one."""
    place, package = "", module.partition(".")[0]
    for frame, line in walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__")).partition(".")[0] == package:
            place = f" in {frame.f_code.co_filename}, line {line}"
    return place


_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|~=|>|<)\s*v?(\d+(?:\.\d+)*)(\.\*)?\s*")


def satisfies(version: str, needed: str) -> bool:
    """Return whether a version satisfies a version specifier; an unreadable clause counts as satisfied."""
    ours = _release(version)
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
    return tuple(map(int, re.findall(r"\d+", re.sub(r"[^\d.].*", "", version))))


def _pad(release: tuple[int, ...], length: int) -> tuple[int, ...]:
    return (*release, *(0,) * (length - len(release)))[:length]


def list_names_of_part(part: type) -> frozenset[str]:
    """Return the public names that a part declares, with those of the classes that it derives from."""
    declared = (
        {*vars(one), *vars(one).get("__annotations__", {})} for one in part.__mro__ if one is not object
    )
    return frozenset(name for names in declared for name in names if not name.startswith("_"))


def find_misplaced_names(kind: object, parts: Sequence[type]) -> Iterator[str]:
    """Yield a clause for each of these parts that the object does not have, but some of whose names it
    defines: edgen would ignore them."""
    for part in parts:
        if isinstance(kind, part):
            continue
        names = list_names_of_part(part)
        for one in type(kind).__mro__:
            own = getattr(kind, "__dict__", ()) if one is type(kind) else ()
            if defined := sorted(names & {*vars(one), *own}):
                yield _describe_misplaced(defined, part, one)
                break


def _describe_misplaced(names: Sequence[str], part: type, where: type) -> str:
    listed = join_list([f"`{name}`" for name in names])
    belong = "belongs" if len(names) == 1 else "belong"
    bases = [part.__name__, *(base.__name__ for base in where.__bases__ if base is not object)]
    return (
        f"defines {listed}, which {belong} to {part.__name__}; derive from it as well: "
        f"class {where.__name__}({', '.join(bases)})"
    )


def warn_of_group(group: str, known: Iterable[str], file: Path) -> None:
    """Warn of a group of entry points in `file` that looks like one of the `known` groups, misspelt."""
    import difflib  # rarely needed

    if near := difflib.get_close_matches(group, list(known), n=1, cutoff=0.8):
        logging.getLogger("edgen").warning(
            "edgen: %s: the group %s of entry points is unknown (did you mean %s?); correct it in "
            "pyproject.toml, and install the package again.",
            file,
            group,
            near[0],
        )

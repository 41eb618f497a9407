"""Errors inside plugins, reported with the plugin's kind, name and package instead of as a bug in edgen.

A plugin here is an object from another package. edgen's own objects are found in the same way, but their
errors are unchanged.
"""

from __future__ import annotations

import functools
import logging
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any, NamedTuple, NoReturn, TypeVar, get_origin

import msgspec

from edgen.core import registry
from edgen.core.errors import CallError, EdgenError, InputError
from edgen.core.registry import Kind, Plugin
from edgen.core.system import is_from_signal
from edgen.core.text import describe_error, describe_type, replace_surrogates, shorten

T = TypeVar("T")
_MOST_ITEMS = 100_000  # that a plugin may list
_SHOWN = 300  # characters of an error's text
_NO_TEXT = (bytes, bytearray, memoryview)  # which msgspec takes for text in base64


class WrongValueError(TypeError):
    """A value that the kind of one of edgen's own objects, or of an object under test, does not allow."""

    def __init__(self, kind: Kind, name: str, said: str) -> None:
        super().__init__(f"the {kind} {name!r} {said}")
        self.said = said  # the clause about it


class FaultyPluginError(InputError):
    """An error raised by a plugin, or a value that its kind does not allow."""

    reason = "plugin"


def make_plugin_error(kind: Kind, name: str, error: BaseException, about: str = "") -> BaseException:
    """Return the error to raise after the object of this kind and name raised `error`.

    That is a FaultyPluginError for a plugin; the error itself for edgen's own objects, and for errors worded
    by edgen and signals. `about` is the purpose of the call, such as "for conversation c-000009-r0".
    """
    plugin = registry.find_plugin(kind, name)
    if plugin is None or isinstance(error, EdgenError | CallError) or is_from_signal(error):
        return error
    steps = [step for step in _iterate_frames(error) if _is_in(_find_module_name(step[0]), plugin)]
    return FaultyPluginError(_describe((plugin,), error, steps[-1] if steps else None, about))


def blame(kind: Kind, name: str, error: BaseException, about: str = "") -> NoReturn:
    """Raise what `make_plugin_error` returns."""
    raised = make_plugin_error(kind, name, error, about)
    if raised is error:
        raise error
    raise raised from error


def find_fault(error: BaseException) -> FaultyPluginError | None:
    """Return the fault of the plugin whose code raised an error; None if the traceback has no frame of a
    plugin. For an OSError, also None if the plugin called edgen's own code, which raised it."""
    if isinstance(error, EdgenError | CallError) or is_from_signal(error):
        return None
    return find_raiser(error)


def find_raiser(error: BaseException, about: str = "", module: str | None = None) -> FaultyPluginError | None:
    """Return what `find_fault` returns, for errors worded by edgen as well, with `about` after the error.
    `module`: the module of the code that ended with the error, for an error without a traceback."""
    steps = [*_iterate_frames(error)][::-1]
    if isinstance(error, OSError):  # one of edgen's own code is about a disk or a file of edgen's
        steps = [*takewhile(lambda step: not _find_module_name(step[0]).startswith("edgen."), steps)]
    if (found := _find_code(steps)) is not None:
        return FaultyPluginError(_describe(found.plugins, error, (found.frame, found.line), about))
    if module is not None and (plugins := _list_plugins_at(module, registry.list_foreign_plugins())):
        return FaultyPluginError(_describe(plugins, error, None, about))
    return None


class _PluginCode(NamedTuple):
    """Code of plugins that runs, or that an error came through."""

    plugins: list[Plugin]  # one, unless several have the code and none of their objects is known to be called
    frame: FrameType
    line: int

    def __str__(self) -> str:
        return f"{_name(self.plugins)} ({_describe_place(self.frame, self.line)})"


def _find_code(steps: Iterable[tuple[FrameType, int]]) -> _PluginCode | None:
    """Return the innermost code of plugins among frames with their lines, the innermost first."""
    if not (foreign := registry.list_foreign_plugins()):
        return None
    steps = [*steps]
    for frame, line in steps:
        if found := _list_plugins_at(_find_module_name(frame), foreign):
            own = [one for one, _ in steps if any(_is_in(_find_module_name(one), each) for each in found)]
            return _PluginCode(_find_called(found, own) or found, frame, line)
    return None


def _list_plugins_at(module: str, plugins: Sequence[Plugin]) -> list[Plugin]:
    """Return the plugins in a module; without any, those of its package."""
    found = [plugin for plugin in plugins if _is_in(module, plugin)]
    return [plugin for plugin in found if _find_home(plugin) == module] or found


def describe_running(frame: FrameType | None) -> str | None:
    """Return which plugin's code runs in a frame or in its callers, and where, as the beginning of a
    sentence; None if none does."""
    found = _find_code(_iterate_callers(frame))
    return None if found is None else str(found)


def describe_interrupted(error: BaseException) -> str | None:
    """Return whose code an error such as that of Ctrl-C ended, in the form of `describe_running`; None if it
    was no plugin's."""
    while not isinstance(error, KeyboardInterrupt) and error.__context__ is not None:
        error = error.__context__  # a library made an exit of it
    found = _find_code([*_iterate_frames(error)][::-1])
    return None if found is None else str(found)


def find_running_fault(frame: FrameType | None, said: str) -> FaultyPluginError | None:
    """Return the fault of the plugin whose code runs in a frame or in its callers; None if none does. `said`
    is the clause about it, as in "stopped the loop"."""
    if (found := _find_code(_iterate_callers(frame))) is None:
        return None
    where = _describe_place(found.frame, found.line)
    return FaultyPluginError(f"{_name(found.plugins)} {said} ({where}). {_describe_advice(found.plugins[0])}")


def _iterate_callers(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    """Yield a frame and its callers with their lines, the innermost first."""
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back


def make_loaded_fault(said: str) -> FaultyPluginError | None:
    """Return the fault that one of the loaded plugins must have; None if no plugin is loaded. `said` is the
    clause about it."""
    loaded = [one for one in registry.list_foreign_plugins() if _find_home(one) in sys.modules]
    if not loaded:
        return None
    who = " or ".join(f"{one.kind} {one.name!r} of {one.origin}" for one in loaded)
    return FaultyPluginError(f"The {who} {said}. {_describe_advice(loaded[0])}")


def refuse_value(kind: Kind, name: str, said: str) -> NoReturn:
    """Raise FaultyPluginError for a value that an object of this kind must not return; `said` is the clause
    about it, as in "returned a str, not a Reply". For edgen's own objects, raise WrongValueError."""
    plugin = registry.find_plugin(kind, name)
    if plugin is None:
        raise WrongValueError(kind, name, said)
    raise FaultyPluginError(f"{plugin.title} {said}. {_describe_advice(plugin)}")


def require_type(kind: Kind, name: str, value: Any, type_: Any, what: str) -> Any:
    """Return a value that an object of this kind returned. Raises FaultyPluginError unless it is of the type;
    `what` names that, as in "a Reply"."""
    if not isinstance(value, type_):
        refuse_value(kind, name, f"returned {shorten(repr(value), 80)}, {describe_type(value)}, not {what}")
    return value


def require_items(kind: Kind, name: str, given: Any, type_: type[T], what: str) -> list[T]:
    """Return the items that an object of this kind gave. Raises FaultyPluginError unless they can be listed
    and each is of the type; `what` names an item, as in "a Problem"."""
    if not isinstance(given, Iterable):
        refuse_value(kind, name, f"returned {shorten(repr(given), 80)}, not a list with {what} each")
    return [require_type(kind, name, one, type_, what) for one in list_items(kind, name, given, what)]


def list_items(kind: Kind, name: str, given: Iterable[T], what: str) -> list[T]:
    """Return all items that an object of this kind gives. Raises FaultyPluginError for far too many; `what`
    names an item, as in "a Problem"."""
    found = [*islice(given, _MOST_ITEMS + 1)]
    if len(found) > _MOST_ITEMS:
        refuse_value(kind, name, f"gave {_MOST_ITEMS:,} times {what} and did not end")
    return found


def require_value(kind: Kind, name: str, value: T, type_: Any, what: str) -> T:
    """Return a value that a plugin returned, with U+FFFD for each lone surrogate, which no file can hold.
    Raises FaultyPluginError unless it is of the type in all its parts, and all numbers in it are finite.
    `what` names it, as in "a Reply". It costs time, so values of edgen's own objects need not be passed."""
    require_type(kind, name, value, get_origin(type_) or type_, what)
    try:
        plain = msgspec.to_builtins(value, builtin_types=_NO_TEXT)
        msgspec.convert(plain, type_)
    except (TypeError, ValueError, RecursionError, msgspec.ValidationError, OverflowError) as error:
        refuse_value(kind, name, f"returned {what} with a field of a wrong type: {error}")
    if (number := _find_not_finite(plain)) is not None:
        refuse_value(kind, name, f"returned {what} with {number}, which is not a finite number")
    try:
        msgspec.json.encode(plain)
    except UnicodeEncodeError:
        _warn_of_surrogates(kind, name, what)
        return msgspec.convert(replace_surrogates(plain), type_)  # type: ignore[no-any-return]
    return value


def _find_not_finite(plain: Any) -> float | None:
    """Return the first number in plain values that JSON has no form for; None if there is none."""
    if isinstance(plain, float):
        return None if math.isfinite(plain) else plain
    each = plain.values() if isinstance(plain, dict) else plain if isinstance(plain, list | tuple) else ()
    return next((number for one in each if (number := _find_not_finite(one)) is not None), None)


@functools.cache
def _warn_of_surrogates(kind: Kind, name: str, what: str) -> None:
    """Warn, once, that texts of a plugin are changed."""
    said = f"returned {what} with a lone surrogate, which no file can hold; each is stored as U+FFFD"
    who = f"The {kind} {name!r}" if (plugin := registry.find_plugin(kind, name)) is None else plugin.title
    logging.getLogger("edgen").warning("edgen: %s %s.", who, said)


def _describe(
    plugins: Sequence[Plugin], error: BaseException, step: tuple[FrameType, int] | None, about: str = ""
) -> str:
    said = shorten(describe_error(error), _SHOWN)
    where = "" if step is None else f" ({_describe_place(*step)})"
    about = f" {about}" if about else ""
    return f"{_name(plugins)} raised {said}{about}{where}. {_describe_advice(plugins[0])}"


def _name(plugins: Sequence[Plugin]) -> str:
    """Return the names of plugins of one package as the beginning of a sentence."""
    who = " or ".join(f"{one.kind} {one.name!r}" for one in plugins)
    return f"The {who} of {plugins[0].origin}"


def _describe_place(frame: FrameType, line: int) -> str:
    return f"{Path(frame.f_code.co_filename)}, line {line}, in {frame.f_code.co_name}"


def _describe_advice(plugin: Plugin) -> str:
    return (
        f"Report this to the authors of {plugin.package}, or update or uninstall it. All stored "
        "answers are kept."
    )


def _iterate_frames(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    """Yield the frames of an error's traceback with their line numbers, the outermost first."""
    yield from walk_tb(error.__traceback__)
    if isinstance(error.__cause__, StopIteration):  # a generator's frames, missing in the RuntimeError
        yield from _iterate_frames(error.__cause__)


def _find_module_name(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _find_home(plugin: Plugin) -> str:
    return plugin.object.partition(":")[0].strip()


def _is_in(module: str, plugin: Plugin) -> bool:
    """Return whether a module is a plugin's, or lies in the same package."""
    home = _find_home(plugin)
    package = home.rpartition(".")[0] or home
    return module in (home, package) or module.startswith((f"{home}.", f"{package}."))


def _find_called(plugins: Sequence[Plugin], frames: Sequence[FrameType]) -> list[Plugin]:
    """Return the plugins whose object, or an object of its type, has a method among the frames."""
    callers = [own for frame in frames if (own := frame.f_locals.get("self")) is not None]
    loaded = [(plugin, _find_loaded(plugin)) for plugin in plugins]
    return [
        plugin
        for plugin, found in loaded
        if found is not None and any(type(own) in (found, type(found)) for own in callers)
    ]


def _find_loaded(plugin: Plugin) -> Any:
    """Return the object of a plugin; None if it is not loaded. Its module may be just being imported, also by
    another thread."""
    found: Any = sys.modules.get(_find_home(plugin))
    for name in plugin.object.partition(":")[2].strip().split("."):
        found = getattr(found, name, None)
    return found

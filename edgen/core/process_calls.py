"""Calls that change the whole process, refused in code of plugins.

Relative paths of a run depend on the working directory, in every thread. Handlers of signals end a command so
that paid answers are stored. `os._exit` ends it without them. Libraries that a plugin calls are not refused.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from edgen.core.system import ENDING_SIGNALS

_MOVES = "would move the relative paths of edgen's files; use absolute paths, or cwd= of a subprocess"
_ENDS = "would end edgen without storing answers; raise an error"
_KEEPS = "would replace edgen's handler, which stores paid answers; edgen cancels the plugin's tasks"
_BETWEEN = frozenset({"contextlib", "asyncio.unix_events"})  # modules that make a call for their caller

_packages: set[str] = set()  # packages of plugins, and modules outside of packages
_process = 0  # the process in which calls are refused; a child that a plugin forks may do what it wants


def refuse_process_calls(module: str) -> None:
    """Refuse the calls from now on, in a plugin's module and its package: they raise RuntimeError."""
    global _process
    if not _packages:
        os.chdir = _guard(os.chdir, "os.chdir", _MOVES)
        os.fchdir = _guard(os.fchdir, "os.fchdir", _MOVES)
        os._exit = _guard(os._exit, "os._exit", _ENDS)
        signal.signal = _guard(signal.signal, "signal.signal", _KEEPS, ENDING_SIGNALS)
    _process = os.getpid()
    _packages.add(module.rpartition(".")[0] or module)


def _guard(function: Callable[..., Any], name: str, why: str, first: tuple[int, ...] = ()) -> Any:
    """Return the function; it refuses calls of plugins. `first`: only with these first arguments."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__") in _BETWEEN:
            frame = frame.f_back
        caller = str(frame.f_globals.get("__name__"))
        refused = any(caller == one or caller.startswith(f"{one}.") for one in _packages)
        if refused and os.getpid() == _process and (not first or (args[:1] and args[0] in first)):
            raise RuntimeError(f"{name} {why}")
        return function(*args, **kwargs)

    return call

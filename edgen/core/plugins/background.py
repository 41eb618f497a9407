"""Errors of plugins that no caller sees: in threads and tasks that plugins started, in callbacks of an event
loop, and when an object of theirs is destroyed.

The work continues, as Python lets it. Each kind of error is reported once, with the plugin's name, instead of
as a bare traceback. Python's own report stays for errors that no plugin's code raised.
"""

from __future__ import annotations

import logging
import sys
import threading
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

from edgen.core.plugins.faults import find_raiser
from edgen.core.system import is_from_signal
from edgen.core.text import escape_for_terminal

if TYPE_CHECKING:
    import asyncio

_THREAD = "in a thread that it started"
_TASK = "in a task that it started and did not await"
_CALLBACK = "in a callback"
_CLEANUP = "when its object was destroyed"


reported: set[tuple[str, str, int]] = set()
"""Type, file and line of each reported error. A command begins with none."""


def on_thread(args: threading.ExceptHookArgs) -> None:
    """Handle an error that ends a thread; for `threading.excepthook`."""
    if isinstance(args.exc_value, SystemExit) or not _report(args.exc_value, _THREAD):
        threading.__excepthook__(args)


def on_cleanup(args: sys.UnraisableHookArgs) -> None:
    """Handle an error in a destructor or the like; for `sys.unraisablehook`."""
    if not _report(args.exc_value, _CLEANUP, _find_module(args.object)):
        sys.__unraisablehook__(args)


def on_loop(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle an error in an event loop; for `set_exception_handler`."""
    error = context.get("exception")
    if isinstance(error, SystemExit | KeyboardInterrupt):
        return  # the loop raises it to its caller, too
    about = _TASK if "task" in context or "future" in context else _CALLBACK
    if not _report(error, about):
        loop.default_exception_handler(context)


def _report(error: BaseException | None, about: str, module: str | None = None) -> bool:
    """Report a plugin's error, unless one of its type was reported from the same line; return whether it is a
    plugin's."""
    if error is None or is_from_signal(error) or (fault := find_raiser(error, about, module)) is None:
        return False
    place = ("", 0)
    for frame, line in walk_tb(error.__traceback__):
        place = (frame.f_code.co_filename, line)
    kind = (type(error).__qualname__, *place)
    if kind not in reported:
        reported.add(kind)
        logging.getLogger("edgen").warning(
            "edgen: %s The command continues.", escape_for_terminal(str(fault))
        )
    return True


def _find_module(code: Any) -> str | None:
    """Return the name of the module that defines a generator, a coroutine, a function or an object's class;
    None if unknown."""
    frame = next(
        (found for name in ("gi_frame", "cr_frame", "ag_frame") if (found := getattr(code, name, None))), None
    )
    module = getattr(code, "__module__", None) if frame is None else frame.f_globals.get("__name__")
    return module if isinstance(module, str) else None

"""Plugins that cancel edgen's tasks, as a loop over `asyncio.all_tasks()` does: they are named, and the work
is not taken for one that a signal stopped."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, MutableMapping
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from edgen.core.plugins.faults import FaultyPluginError, find_running_fault, make_loaded_fault, refuse_value
from edgen.core.registry import find_plugin

_SAID = "cancelled tasks of edgen, in place of its own"
_found: MutableMapping[asyncio.AbstractEventLoop, FaultyPluginError] = WeakKeyDictionary()


class GuardedTask(asyncio.Task[Any]):
    """A task that raises FaultyPluginError in code of a plugin that cancels it. Signals, time-outs and edgen
    itself still cancel it."""

    def cancel(self, msg: Any = None) -> bool:
        """Cancel the task."""
        caller = sys._getframe(1)
        # asyncio calls it for a signal, also above a frame of a plugin, and for time-outs.
        if not str(caller.f_globals.get("__name__")).startswith("asyncio."):
            fault = find_running_fault(caller, _SAID)
            if fault is not None:
                _found[self.get_loop()] = fault
                raise fault
        return super().cancel(msg)


def refuse_cancellation(providers: Iterable[str] = ()) -> NoReturn:
    """Raise the error for work of the running loop that was cancelled from inside, without a signal.

    Raises FaultyPluginError for the plugin that cancelled a task of edgen; if unknown, for one of these
    providers, which answer its calls; else for all loaded plugins. Raises RuntimeError without a plugin.
    """
    if (found := _found.get(asyncio.get_running_loop())) is not None:
        raise found
    for name in sorted({*providers}):
        if find_plugin("provider", name) is not None:
            refuse_value("provider", name, "cancelled the task that awaits its answer")
    raise make_loaded_fault(_SAID) or RuntimeError("the work was cancelled from inside")

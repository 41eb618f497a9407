"""Threads of plugins that do not end with the command. They are named, and edgen does not wait for them."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from typing import NoReturn

from edgen.core import registry
from edgen.core.plugins.faults import find_running_fault, make_loaded_fault
from edgen.core.text import escape_for_terminal

ENDING = 5.0
"""Seconds that a thread of a plugin may take after the end of the command."""
_SAID = "runs a thread that did not end within {:g} s after the command"


def end_process(code: str | int | None = None) -> NoReturn:
    """Exit with this code, as sys.exit does. Python waits for all threads but daemons; here, they have ENDING
    seconds. Then warn of those of plugins, and end the process without waiting for them."""
    if registry.list_foreign_plugins() and _list_threads():
        number = code if isinstance(code, int) else int(code is not None)
        threading.Thread(target=_end_late, args=(number,), daemon=True).start()
    sys.exit(code)


def _list_threads() -> list[threading.Thread]:
    """Return the threads that Python waits for at its end."""
    main = threading.main_thread()
    return [one for one in threading.enumerate() if one is not main and not one.daemon]


def _end_late(code: int) -> None:
    until = time.monotonic() + ENDING
    while (left := _list_threads()) and time.monotonic() < until:
        time.sleep(0.05)
    frames = sys._current_frames()
    said = _SAID.format(ENDING)
    faults = [  # a thread that runs C has no frame of a plugin
        find_running_fault(frames.get(one.ident or 0), said) or make_loaded_fault(said) for one in left
    ]
    for text in sorted({str(one) for one in faults if one is not None}):
        logging.getLogger("edgen").warning("edgen: %s", escape_for_terminal(text))
    if any(faults):
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        os._exit(code)

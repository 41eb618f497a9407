"""Plugins may not change the working directory: a run's relative paths depend on it, in every thread."""

from __future__ import annotations

import os
import sys
from typing import Any

_packages: set[str] = set()  # packages of plugins, and modules outside of packages
_process = 0  # the process of edgen; a child that a plugin forks may go where it wants


def keep_from(module: str) -> None:
    """Refuse changes from now on in a plugin's module and its package: they raise RuntimeError. Libraries
    that it calls may make them."""
    global _process
    if not _packages:
        sys.addaudithook(_refuse_change)
    _process = os.getpid()
    _packages.add(module.rpartition(".")[0] or module)


def _refuse_change(event: str, _arguments: Any) -> None:
    if event != "os.chdir" or os.getpid() != _process:  # also os.fchdir's event
        return
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") == "contextlib":
        frame = frame.f_back
    caller = str(frame.f_globals.get("__name__"))
    if any(caller == one or caller.startswith(f"{one}.") for one in _packages):
        raise RuntimeError(
            "a change of the working directory would move the relative paths of edgen's files; use absolute "
            "paths, or cwd= of a subprocess"
        )

"""Measures of plugins that raise: each is left out, and its error is reported."""

from __future__ import annotations

from edgen.core.plugins.faults import FaultyPluginError, make_plugin_error

Faults = dict[str, FaultyPluginError]  # by the measure's name


def leave_out(name: str, error: BaseException, faults: Faults, about: str = "") -> None:
    """Note in `faults` the error of a plugin's measure. `about`: the purpose of the call that raised it.

    Raises the error itself if the measure is one of edgen's own, or the error a signal's.
    """
    fault = make_plugin_error("measure", name, error, about)
    if not isinstance(fault, FaultyPluginError):
        raise fault
    faults[name] = fault

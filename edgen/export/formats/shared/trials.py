"""Releases of the libraries with which edgen's authors tried exports in several formats, and the day."""

from __future__ import annotations

from functools import partial

from edgen.plugin.formats import Tried

AXOLOTL = partial(Tried, "axolotl", "0.19.0", "2026-11-22")
DATASETS = partial(Tried, "datasets", "5.2.0", "2026-11-22")
LLAMAFACTORY = partial(Tried, "llamafactory", "0.9.5", "2026-11-22")
OPEN_INSTRUCT = partial(Tried, "open-instruct", "e6c3044aa", "2026-11-22")
TRL = partial(Tried, "trl", "1.16.0", "2026-11-22")
UNSLOTH = partial(Tried, "unsloth", "2026.10.9", "2026-11-22")
VERL = partial(Tried, "verl", "0.9.1", "2026-11-22")

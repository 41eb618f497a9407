"""Finished runs as data sets that trainers take: one file a format, and the one table of all of them."""

from __future__ import annotations

from collections.abc import Mapping

from edgen.exporters import (
    convokit,
    csv,
    ed,
    hf,
    mtpo,
    openrlhf,
    refuel,
    sharegpt,
    trl_conversation,
    trl_dpo,
    trl_kto,
    trl_prompts,
    trl_sft,
    verl,
)
from edgen.exporters.base import REASONS, Format, Row, Run, Storage, Unfit
from edgen.exporters.caveats import unfinished
from edgen.exporters.hub import usual_storage
from edgen.exporters.voice import OPENING_VARIABLES, Opening, Voice
from edgen.exporters.write import Exported, check_target, export

_MODULES = (
    trl_dpo,
    trl_conversation,
    trl_kto,
    trl_sft,
    trl_prompts,
    openrlhf,
    refuel,
    verl,
    sharegpt,
    mtpo,
    hf,
    convokit,
    csv,
    ed,
)
EXPORTERS: Mapping[str, Format] = {module.FORMAT.name: module.FORMAT for module in _MODULES}

__all__ = [
    "EXPORTERS",
    "OPENING_VARIABLES",
    "REASONS",
    "Exported",
    "Format",
    "Opening",
    "Row",
    "Run",
    "Storage",
    "Unfit",
    "Voice",
    "check_target",
    "export",
    "unfinished",
    "usual_storage",
]

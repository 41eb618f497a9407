"""Options of `edgen score`, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from edgen.core.options import Positive, option

CANDIDATES = option("Candidates of each example.", "--candidates", metavar="N")


class ScoreOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a score."""

    candidates: Annotated[Positive, CANDIDATES] = 100
    examples: Annotated[
        Path | None,
        option(
            "Check that rankings name candidates of these examples, or of this shared pool (TSV).",
            metavar="FILE",
        ),
    ] = None

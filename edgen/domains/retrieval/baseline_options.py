"""Options of `edgen baseline`, each declared once."""

from __future__ import annotations

from typing import Annotated, Literal

from edgen.asking.options import FileAskOptions
from edgen.core.options import (
    OTHERWISE,
    CallMode,
    CallVia,
    DrawSeed,
    declare_backend,
    declare_template,
    option,
)


class BaselineOptions(FileAskOptions, frozen=True, kw_only=True):
    """The options of a ranking; all but the first two are those of a model."""

    by: Annotated[
        Literal["chance", "tfidf", "bm25", "model"],
        option("Rank at random, by shared words (TF-IDF or BM25), or with a model.", "--method"),
    ] = "bm25"
    seed: DrawSeed = 0
    backend: Annotated[
        str | None, declare_backend(f"With --method model.  {OTHERWISE}", metavar="JOB[:ROLE]")
    ] = None
    prompt: Annotated[str | None, declare_template("rank_candidates")] = None
    none: Annotated[
        bool,
        option('With --method model: rank NONE ("no candidate is right") as well.', "--with-none"),
    ] = False
    via: CallVia = "online"

    @property
    def way(self) -> CallMode:
        """The way in which calls are made."""
        return CallMode(self.via)

"""Options of `edgen baseline`, each declared once."""

from __future__ import annotations

from typing import Annotated, Literal

from edgen.asking.options import FileAskOptions
from edgen.core.options import CallMode, CallVia, DrawSeed, option


class BaselineOptions(FileAskOptions, frozen=True, kw_only=True):
    """Options of a ranking; all but `by` and `seed` apply to a model's."""

    by: Annotated[
        Literal["chance", "tfidf", "bm25", "model"],
        option("Rank at random, by shared words (TF-IDF or BM25), or with a model.", "--method"),
    ] = "bm25"
    seed: DrawSeed = 0
    none: Annotated[
        bool,
        option('With --method model: rank NONE ("no candidate is right") as well.', "--with-none"),
    ] = False
    via: CallVia = "online"

    @property
    def mode(self) -> CallMode:
        """The way in which calls are made."""
        return CallMode(self.via)

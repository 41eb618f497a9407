"""Options of a selection."""

from __future__ import annotations

from typing import Annotated

import msgspec

from edgen.core.options import DrawSeed, option


class SelectOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a selection."""

    where: Annotated[
        tuple[str, ...],
        option("Keep conversations for which this is true; repeatable.", metavar="EXPRESSION"),
    ] = ()
    cap: Annotated[
        tuple[str, ...],
        option("Keep at most N of each value, as in --cap topic=50.", metavar="NAME=N"),
    ] = ()
    balance: Annotated[
        tuple[str, ...],
        option("Keep equally many of each value: as many as of the rarest.", metavar="NAME"),
    ] = ()
    draw: Annotated[int | None, option("Keep N of the rest, drawn at random.", metavar="N", ge=1)] = None
    seed: DrawSeed = 0
    """It decides the draws of `cap`, `balance` and `draw`."""
    split_by: Annotated[str | None, option("Split again, each value on one side.", metavar="NAME")] = None
    in_order: Annotated[bool, option("With --split-by: the last values become the test side.")] = False
    test: Annotated[
        float | None,
        option("With --split-by: the test side's share.  [default: as in the run]", metavar="SHARE"),
    ] = None

    @property
    def words(self) -> tuple[str, ...]:
        """The options as they are written on a command line."""
        named = [("--where", self.where), ("--cap", self.cap), ("--balance", self.balance)]
        words = [word for option, values in named for value in values for word in (option, value)]
        if self.draw is not None:
            words += ["--draw", str(self.draw)]
        if self.split_by is not None:
            words += ["--split-by", self.split_by, *(["--in-order"] if self.in_order else [])]
            words += [] if self.test is None else ["--test", str(self.test)]
        return (*words, "--seed", str(self.seed)) if self.seed else tuple(words)

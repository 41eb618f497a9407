"""A sheet in which people vote: CSV, one row for each pair, blind, with an empty column `choice`.

    pair,before,first,second,choice,rater,comment

`choice` is 1, 2 or tie. Without `rater`, the file's name names the person. `pair` reveals nothing about the
conversations. Cells that a spreadsheet could read as formulas begin with an apostrophe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from edgen.core.errors import DataError, refuse_lines
from edgen.core.pair import HumanVote
from edgen.core.people.sheets import (
    cut_cell,
    is_sheet,
    read_sheet,
    render_sheet_head,
    render_sheet_line,
    write_sheet,
)
from edgen.core.yaml_values import read_text, shorten_word
from edgen.preferences.vote_units import VotePair, choose_first_side, list_vote_pairs, read_texts
from edgen.protocols.base import transcript_of
from edgen.store.run_reader import RunReader
from edgen.store.votes import HumanChoice, Votes, order_vote

COLUMNS = ("pair", "before", "first", "second", "choice", "rater", "comment")
_NEEDED = ("pair", "choice")
_EXPECTED = f"A sheet has the columns {', '.join(COLUMNS)}; without them, each line is a JSON object."
_SHEET = "sheet"  # seed of the choice of sides
_MAX_BYTES = 1 << 28
_KEY = re.compile(r"u-[0-9a-f]{20}")


class SheetVotes(NamedTuple):
    """The votes of a sheet. `stale` counts filled rows about pairs that the run does not have now."""

    votes: Votes
    stale: int


def write_vote_sheet(reader: RunReader, path: Path) -> int:
    """Write a sheet of the run's pairs to a new file. Return the number of pairs. Raises UsageError if `path`
    exists, and for a run without pairs."""
    nothing = (
        f"{reader.rundir.path}: there are no pairs to vote on: no scenario has two accepted conversations "
        "that differ."
    )
    return write_sheet(path, render_sheet_head(COLUMNS), map(render_sheet_line, _list_rows(reader)), nothing)


def _list_rows(reader: RunReader) -> Iterator[tuple[str, ...]]:
    for pair in list_vote_pairs(reader):
        texts = read_texts(reader, pair)
        if texts is None:
            continue
        sides = [transcript_of(one) for one in (texts.a, texts.b)]
        if choose_first_side(pair.unit, _SHEET) == "b":
            sides.reverse()
        shown = [cut_cell(text) for text in (transcript_of(texts.before), *sides)]
        yield (pair.key, *shown, "", "", "")


def has_vote_sheet(path: Path) -> bool:
    """Return whether a file of votes is a sheet; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            return is_sheet(file.readline(4_096).decode("utf-8", "replace"))
    except OSError:
        return False


def read_vote_sheet(reader: RunReader, path: Path) -> SheetVotes:
    """Read a filled sheet. Rows without a choice are skipped. Raises DataError with every problem and its
    line."""
    source = str(path)
    text = read_text(path, DataError, max_bytes=_MAX_BYTES)
    known = {pair.key: pair for pair in list_vote_pairs(reader)}
    found: dict[tuple[str, str], list[HumanVote]] = {}
    seen: dict[tuple[str, str], int] = {}
    problems: list[tuple[int, str]] = []
    stale = 0
    for number, row in read_sheet(text, source, _NEEDED, _EXPECTED):
        if isinstance(row, str):
            problems.append((number, row))
            continue
        if not (said := row.get("choice", "").strip()):
            continue
        key, rater = row.get("pair", "").strip(), row.get("rater", "").strip() or path.stem
        if not _KEY.fullmatch(key):
            problems.append((number, f"pair: {shorten_word(repr(key))} is not a pair of a sheet"))
        elif said.lower() not in ("1", "2", "tie"):
            problems.append((number, f"choice: expected 1, 2 or tie, got {shorten_word(repr(said))}"))
        elif (first := seen.setdefault((key, rater), number)) != number:
            problems.append((number, f"line {first} already has this pair and rater"))
        elif key not in known:
            stale += 1
        else:
            names, vote = _read_vote(known[key], said.lower(), rater)
            found.setdefault(names, []).append(vote)
    refuse_lines(source, "sheet of votes", problems)
    if not found and not stale:
        raise DataError(source, "it holds no votes: the column `choice` is empty. Write 1, 2 or tie into it.")
    return SheetVotes({names: tuple(votes) for names, votes in found.items()}, stale)


def _read_vote(pair: VotePair, said: str, rater: str) -> tuple[tuple[str, str], HumanVote]:
    """Return the pair of a row, in alphabetical order, and its vote."""
    choice: HumanChoice = "tie"
    if said != "tie":
        choice = "a" if (said == "1") == (choose_first_side(pair.unit, _SHEET) == "a") else "b"
    return order_vote(pair.a, pair.b, HumanVote(rater=rater, choice=choice, texts=pair.texts))

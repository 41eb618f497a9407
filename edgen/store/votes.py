"""People's votes, kept with a run: each with a digest of the texts that it is about.

A vote that was cast on other texts than the run now holds, since it was made anew, counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from edgen.core.errors import DataError
from edgen.core.files import write_lines
from edgen.core.pair import Candidate, HumanVote
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader, texts_digest
from edgen.store.votes_file import Votes, read_votes, votes_on

_encode = msgspec.json.Encoder().encode


def take_votes(reader: RunReader, path: Path) -> int:
    """Keep a file's votes with the run, beside those it has; returns how many lines were new or changed.

    A rater's later vote on a pair replaces the earlier one. Raises DataError with every problem.
    """
    given = read_votes(_lines(path), str(path), reader.scenario_of)
    kept = {key: {vote.rater: vote for vote in votes} for key, votes in stored_votes(reader).items()}
    changed = 0
    for key, votes in given.items():
        a, b = sorted((reader.named(identifier) for identifier in key), key=reader.place)
        texts = texts_digest(a, b)
        for vote in votes:
            vote = msgspec.structs.replace(vote, texts=vote.texts or texts)
            here = kept.setdefault(key, {})
            changed += here.get(vote.rater) != vote
            here[vote.rater] = vote
    if changed:
        reader.rundir.votes.parent.mkdir(exist_ok=True)
        lines = (
            _encode({"a": a, "b": b, "choice": vote.choice, "rater": vote.rater, "texts": vote.texts})
            for (a, b), votes in sorted(kept.items())
            for vote in votes.values()
        )
        write_lines(reader.rundir.votes, lines)
    return changed


def stored_votes(reader: RunReader) -> Votes:
    """The votes that are kept with the run, those on conversations that are gone among them."""
    return read_stored(reader.rundir)


def read_stored(rundir: RunFolder) -> Votes:
    """The votes in a run's folder."""
    path = rundir.votes
    return read_votes(_lines(path), str(path), lambda _identifier: 0) if path.exists() else {}


def votes_that_hold(votes: Votes, a: Candidate, b: Candidate) -> tuple[HumanVote, ...]:
    """The votes on two conversations as they are now, a the one that comes first."""
    cast = votes_on(votes, a.id, b.id)
    if not cast:
        return ()
    texts = texts_digest(a, b)
    return tuple(vote for vote in cast if vote.texts in (None, texts))


def _lines(path: Path) -> Iterator[str]:
    """The file's lines, read as they are wanted."""
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            yield from file
    except UnicodeDecodeError:
        raise DataError(str(path), "this is not UTF-8 text.") from None
    except OSError as problem:
        raise DataError(str(path), f"it cannot be read: {problem.strerror}.") from None

"""People's choices between two conversations: those given on the pages of the run (see `edgen.store.people`),
and those of files, stored as JSON Lines with a digest of the shown texts.

    {"a": "algebra-000003-r0", "b": "algebra-000003-r1", "choice": "b", "rater": "rater_1"}

`a` and `b` are ids of conversations of one scenario, in either order; `choice` is "a", "b" or "tie".
`"texts"` may give the pair's digest of the shown texts; a vote on texts that have changed since is ignored.
If a rater votes on a pair again, the later line counts. Two responses to one turn are a pair within one
conversation: `a` and `b` are equal, "a" is the response with the smaller number, and `"texts"` identifies the
pair.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from edgen.core.errors import DataError, refuse_lines
from edgen.core.kept_files import require_kept
from edgen.core.pair import Candidate, HumanVote, digest_texts
from edgen.store.people import People, has_people
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader

Votes = dict[tuple[str, str], tuple[HumanVote, ...]]
HumanChoice = Literal["a", "b", "tie"]
ScenarioOf = Callable[[str], int | None]

_KEYS = ("a", "b", "choice", "rater")
_KNOWN = (*_KEYS, "texts")
_DIGEST = re.compile("[0-9a-f]{16}")
_TURNED: dict[HumanChoice, HumanChoice] = {"a": "b", "b": "a", "tie": "tie"}

VOTE = "vote"
"""The task of people who vote. Between runs, the name of the pairs' folder follows."""
_BETWEEN = "~"  # occurs in no conversation's id

_encode = msgspec.json.Encoder().encode

REMEDY = (
    "Only people can give these again: restore the file from a copy. If you changed it on purpose, move it "
    "away together with digests.json, and give it with --people."
)


def take_votes(reader: RunReader, path: Path, by_pair: Votes | None = None) -> Counter[str]:
    """Add a file's votes to the stored ones. Return the number of earlier votes that other choices replaced,
    by rater. `by_pair`: the votes, if they are already read.

    A rater's later vote on a pair replaces the earlier one. Raises DataError with every problem.
    """
    by_pair = read_votes_of_file(path, reader.scenario_of) if by_pair is None else by_pair
    kept = {
        key: {make_rater_key(key, vote): vote for vote in votes}
        for key, votes in read_filed_votes(reader.rundir).items()
    }
    changed, replaced = False, Counter[str]()
    for key, votes in by_pair.items():
        a, b = sorted((reader.named(identifier) for identifier in key), key=reader.place)
        texts = digest_texts(a, b)
        for vote in votes:
            vote = msgspec.structs.replace(vote, texts=vote.texts or texts)
            here, rater = kept.setdefault(key, {}), make_rater_key(key, vote)
            before = here.get(rater)
            changed |= before != vote
            replaced[vote.rater] += before is not None and before.choice != vote.choice
            here[rater] = vote
    if changed:
        store_votes(reader.rundir, {key: here.values() for key, here in kept.items()})
    return +replaced


def read_stored_votes(rundir: RunFolder) -> Votes:
    """Return all votes stored with a run, from files and from its pages, including votes on removed
    conversations.

    A vote on a page replaces a file's vote of the same rater on the same texts.
    """
    found = {
        key: {(vote.rater, vote.texts): vote for vote in votes}
        for key, votes in read_filed_votes(rundir).items()
    }
    for key, vote in _read_given_on_pages(rundir):
        here = found.setdefault(key, {})
        here.pop((vote.rater, None), None)
        here[vote.rater, vote.texts] = vote
    return {key: tuple(votes.values()) for key, votes in found.items()}


def order_vote(a: str, b: str, vote: HumanVote) -> tuple[tuple[str, str], HumanVote]:
    """Return two ids in alphabetical order, and the vote on them in this order."""
    if a <= b:
        return (a, b), vote
    return (b, a), msgspec.structs.replace(vote, choice=_TURNED[vote.choice])


def make_rater_key(pair: tuple[str, str], vote: HumanVote) -> tuple[str, str]:
    """Return the key of a vote on two ids; a later vote with the same key replaces it. One conversation may
    hold several pairs of responses, which differ in the digest of their texts."""
    return vote.rater, (vote.texts or "") if pair[0] == pair[1] else ""


def make_vote_task(rundir: RunFolder) -> str:
    """Return the name of the task in which people vote on the pairs of a run, or on the pairs between it and
    others."""
    between = rundir.pairs_folder.parent == rundir.against
    return f"{VOTE} {rundir.pairs_folder.name}" if between else VOTE


def is_vote(task: str) -> bool:
    """Return whether people vote in a task."""
    return task.partition(" ")[0] == VOTE


def make_vote_unit(a: str, b: str, texts: str) -> str:
    """Return the unit of the task "vote" for two conversations, in the order of the run, and the digest of
    their texts."""
    return _BETWEEN.join((a, b, texts))


def read_vote_unit(unit: str) -> tuple[str, str, str] | None:
    """Return the two ids and the digest in a unit; None for a repeat or a known answer, which check attention
    and are no votes."""
    parts = unit.split(_BETWEEN)
    if len(parts) != 3 or not _DIGEST.fullmatch(parts[2]):
        return None
    return parts[0], parts[1], parts[2]


def _read_given_on_pages(rundir: RunFolder) -> Iterator[tuple[tuple[str, str], HumanVote]]:
    """Yield the votes that people gave on the run's pages, each with its pair in alphabetical order."""
    if not has_people(rundir.path):
        return
    with People(rundir.path) as people:
        latest = people.read_latest_answers(make_vote_task(rundir))
    for (unit, person), answer in latest.items():
        pair = read_vote_unit(unit)
        choice = answer.value.get("choice") if isinstance(answer.value, dict) else None
        if pair is None or choice not in _TURNED:
            continue
        a, b, texts = pair
        yield order_vote(a, b, HumanVote(rater=person, choice=choice, texts=texts))


def read_filed_votes(rundir: RunFolder) -> Votes:
    """Return the stored votes of files. Lines that people appended are accepted; lines that edgen wrote must
    be unchanged."""
    path = rundir.votes
    require_kept(path, REMEDY)
    return read_votes_of_file(path, lambda _identifier: 0) if path.exists() else {}


def store_votes(rundir: RunFolder, votes: Mapping[tuple[str, str], Iterable[HumanVote]]) -> None:
    """Replace the stored votes of a run."""
    rundir.votes.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        _encode({"a": a, "b": b, "choice": vote.choice, "rater": vote.rater, "texts": vote.texts})
        for (a, b), cast in sorted(votes.items())
        for vote in cast
    )
    rundir.write_lines(rundir.votes, lines, grows=True)


def read_votes_of_file(path: Path, scenario_of: ScenarioOf) -> Votes:
    """Return the votes of a file. Raises DataError with every problem and its line."""
    return read_votes(_iterate_lines(path), str(path), scenario_of)


def select_votes_that_hold(votes: Votes, a: Candidate, b: Candidate) -> tuple[HumanVote, ...]:
    """Return the votes on two conversations with their present texts, with `a` first."""
    cast = select_votes(votes, a.id, b.id)
    texts = digest_texts(a, b) if cast else None
    return tuple(vote for vote in cast if vote.texts in (None, texts))


def read_votes(lines: Iterable[str], source: str, scenario_of: ScenarioOf) -> Votes:
    """Return the votes of a file's lines, by pair of ids in alphabetical order; "a" is the first of them.

    `source` names the file. `scenario_of` maps a conversation's id to its scenario, None if unknown. Empty
    lines are skipped. Raises DataError with every problem and its line, counted from 1.
    """
    found: dict[tuple[str, str], dict[tuple[str, str], HumanVote]] = {}
    problems: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            pair, vote = _read(line, scenario_of)
            found.setdefault(pair, {})[make_rater_key(pair, vote)] = vote
        except _NoVoteError as wrong:
            problems += [(number, message) for message in wrong.args]
    refuse_lines(source, "votes file", problems)
    return {pair: tuple(votes.values()) for pair, votes in found.items()}


def select_votes(votes: Votes, a: str, b: str) -> tuple[HumanVote, ...]:
    """Return the votes on two conversations, in the order of the arguments."""
    cast = votes.get((min(a, b), max(a, b)), ())
    return cast if a <= b else tuple(msgspec.structs.replace(v, choice=_TURNED[v.choice]) for v in cast)


class _NoVoteError(ValueError):
    """An invalid vote line. Its arguments are the problems."""


def _read(line: str, scenario_of: ScenarioOf) -> tuple[tuple[str, str], HumanVote]:
    """Read a line's vote and its pair. Raises _NoVoteError."""
    try:
        value: Any = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        raise _NoVoteError(f"this is not valid JSON: {_quote_value(line.strip())}") from None
    if not isinstance(value, dict):
        raise _NoVoteError(f"expected an object with the keys {', '.join(_KEYS)}, got {_quote_value(value)}")
    wrong = [f"the key {key} is missing" for key in _KEYS if key not in value]
    wrong += [
        f"unknown key {_quote_value(key)} (known: {', '.join(_KNOWN)})" for key in value if key not in _KNOWN
    ]
    wrong += [
        f"{key}: {problem}" for key in _KNOWN if key in value and (problem := _find_problem(key, value[key]))
    ]
    if wrong:
        raise _NoVoteError(*wrong)
    a, b, choice = value["a"], value["b"], value["choice"]
    of = {key: scenario_of(value[key]) for key in ("a", "b")}
    if unknown := [key for key, scenario in of.items() if scenario is None]:
        raise _NoVoteError(
            *(
                f"{key}: this run has no conversation with the id {_quote_value(value[key])}"
                for key in unknown
            )
        )
    if a == b and value.get("texts") is None:
        raise _NoVoteError(
            f"a and b are the same conversation, {_quote_value(a)}; for two responses to one of its turns, "
            "give `texts`, the digest of the pair"
        )
    if of["a"] != of["b"]:
        raise _NoVoteError(
            f"{_quote_value(a)} and {_quote_value(b)} belong to different scenarios, {of['a']} and {of['b']}"
        )
    return order_vote(a, b, HumanVote(rater=value["rater"].strip(), choice=choice, texts=value.get("texts")))


def _find_problem(key: str, value: Any) -> str | None:
    if key == "texts":
        if value is None or (isinstance(value, str) and _DIGEST.fullmatch(value)):
            return None
        return (
            f"expected the digest of a pair, 16 hexadecimal digits in lower case, got {_quote_value(value)}"
        )
    if not isinstance(value, str) or not value.strip():
        return f"expected a text, got {_quote_value(value)}"
    if key == "choice" and value not in _TURNED:
        return f"expected a, b or tie, got {_quote_value(value)}"
    return None


def _quote_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 62 else text[:60] + "…"


def _iterate_lines(path: Path) -> Iterator[str]:
    """Yield the file's lines lazily."""
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            yield from file
    except UnicodeDecodeError:
        raise DataError(str(path), "this is not UTF-8 text; save the file as UTF-8.") from None
    except OSError as problem:
        raise DataError(str(path), f"it cannot be read: {problem.strerror}.") from None

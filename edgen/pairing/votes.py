"""A votes file: people's choices between two conversations, as JSON Lines.

    {"a": "algebra-000003-r0", "b": "algebra-000003-r1", "choice": "b", "rater": "kim"}

`a` and `b` are ids of conversations of one scenario, in either order; `choice` is "a", "b" or "tie".
A rater who votes on a pair again changes their mind: the later line counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from edgen.errors import DataError, Problem
from edgen.pairing.model import HumanVote

Votes = dict[tuple[str, str], tuple[HumanVote, ...]]
HumanChoice = Literal["a", "b", "tie"]

_KEYS = ("a", "b", "choice", "rater")
_CHOICES: dict[str, HumanChoice] = {"a": "a", "b": "b", "tie": "tie"}
_TURNED: dict[HumanChoice, HumanChoice] = {"a": "b", "b": "a", "tie": "tie"}
_MOST_PROBLEMS = 50  # shown; the others are counted


def read_votes(lines: Iterable[str], source: str, known_ids: Mapping[str, int]) -> Votes:
    """The votes of a file's lines, by pair of ids in alphabetical order, "a" meaning the first of them.

    `source` names the file; `known_ids` gives the scenario of each conversation there is. Empty lines
    are skipped. Raises DataError with every problem and its line, counted from 1.
    """
    found: dict[tuple[str, str], dict[str, HumanVote]] = {}
    problems: list[Problem] = []
    more = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        wrong, vote = _read(line, known_ids)
        for message in wrong:
            if len(problems) < _MOST_PROBLEMS:
                problems.append(Problem(f"line {number}", message))
            else:
                more += 1
        if vote is not None:
            pair, rater, choice = vote
            found.setdefault(pair, {})[rater] = HumanVote(rater=rater, choice=choice)
    if problems:
        count = len(problems) + more
        if more:
            problems.append(Problem("further lines", f"{more:,} more problems"))
        raise DataError(source, f"{count:,} problem{'s' if count > 1 else ''} in this votes file:", problems)
    return {pair: tuple(votes.values()) for pair, votes in found.items()}


def votes_on(votes: Votes, a: str, b: str) -> tuple[HumanVote, ...]:
    """The votes on two conversations, with `a` and `b` in the sense of the arguments."""
    if a <= b:
        return votes.get((a, b), ())
    return tuple(HumanVote(rater=v.rater, choice=_TURNED[v.choice]) for v in votes.get((b, a), ()))


_Vote = tuple[tuple[str, str], str, HumanChoice]


def _read(line: str, known_ids: Mapping[str, int]) -> tuple[list[str], _Vote | None]:
    """What is wrong with a line, or the vote it holds."""
    try:
        value: Any = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return [f"this is not valid JSON: {_shown(line.strip())}"], None
    if not isinstance(value, dict):
        return [f"expected an object with the keys {', '.join(_KEYS)}, got {_shown(value)}"], None
    wrong = [f"the key {key} is missing" for key in _KEYS if key not in value]
    wrong += [f"unknown key {_shown(key)} (known: {', '.join(_KEYS)})" for key in value if key not in _KEYS]
    wrong += [
        f"{key}: {problem}"
        for key in _KEYS
        if key in value and (problem := _problem(key, value[key], known_ids))
    ]
    if wrong:
        return wrong, None
    a, b, rater, choice = value["a"], value["b"], value["rater"], _CHOICES[value["choice"]]
    if a == b:
        return [f"a and b are the same conversation, {_shown(a)}"], None
    if known_ids[a] != known_ids[b]:
        return [
            f"{_shown(a)} and {_shown(b)} are of different scenarios, {known_ids[a]} and {known_ids[b]}"
        ], None
    return [], ((a, b), rater, choice) if a < b else ((b, a), rater, _TURNED[choice])


def _problem(key: str, value: Any, known_ids: Mapping[str, int]) -> str | None:
    if not isinstance(value, str) or not value.strip():
        return f"expected a text, got {_shown(value)}"
    if key == "choice" and value not in _CHOICES:
        return f"expected a, b or tie, got {_shown(value)}"
    if key in ("a", "b") and value not in known_ids:
        return f"this run has no conversation with the id {_shown(value)}"
    return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 62 else text[:60] + "…"

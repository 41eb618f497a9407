"""A votes file: people's choices between two conversations, as JSON Lines.

    {"a": "algebra-000003-r0", "b": "algebra-000003-r1", "choice": "b", "rater": "kim"}

`a` and `b` are ids of conversations of one scenario, in either order; `choice` is "a", "b" or "tie".
`"texts"` may say, by the digest that pairs have, which texts were shown. A rater who votes on a pair again
changes their mind: the later line counts. Lines are read one by one; only the votes are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from edgen.core.errors import DataError, Problem
from edgen.core.pair import HumanVote

Votes = dict[tuple[str, str], tuple[HumanVote, ...]]
HumanChoice = Literal["a", "b", "tie"]
ScenarioOf = Callable[[str], int | None]

_KEYS = ("a", "b", "choice", "rater")
_KNOWN = (*_KEYS, "texts")
_DIGEST = re.compile("[0-9a-f]{16}")
_CHOICES: dict[str, HumanChoice] = {"a": "a", "b": "b", "tie": "tie"}
_TURNED: dict[HumanChoice, HumanChoice] = {"a": "b", "b": "a", "tie": "tie"}
_MOST_PROBLEMS = 50  # shown; the others are counted


def read_votes(lines: Iterable[str], source: str, scenario_of: ScenarioOf) -> Votes:
    """The votes of a file's lines, by pair of ids in alphabetical order, "a" meaning the first of them.

    `source` names the file; `scenario_of` gives the scenario of a conversation by its id, None where there
    is no such conversation. Empty lines are skipped. Raises DataError with every problem and its line, counted from 1.
    """
    found: dict[tuple[str, str], dict[str, HumanVote]] = {}
    problems: list[Problem] = []
    more = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        wrong, read = _read(line, scenario_of)
        for message in wrong:
            if len(problems) < _MOST_PROBLEMS:
                problems.append(Problem(f"line {number}", message))
            else:
                more += 1
        if read is not None:
            pair, vote = read
            found.setdefault(pair, {})[vote.rater] = vote
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
    return tuple(msgspec.structs.replace(v, choice=_TURNED[v.choice]) for v in votes.get((b, a), ()))


def _read(line: str, scenario_of: ScenarioOf) -> tuple[list[str], tuple[tuple[str, str], HumanVote] | None]:
    """What is wrong with a line, or the vote it holds and the pair it is on."""
    try:
        value: Any = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return [f"this is not valid JSON: {_shown(line.strip())}"], None
    if not isinstance(value, dict):
        return [f"expected an object with the keys {', '.join(_KEYS)}, got {_shown(value)}"], None
    wrong = [f"the key {key} is missing" for key in _KEYS if key not in value]
    wrong += [f"unknown key {_shown(key)} (known: {', '.join(_KNOWN)})" for key in value if key not in _KNOWN]
    wrong += [
        f"{key}: {problem}" for key in _KNOWN if key in value and (problem := _problem(key, value[key]))
    ]
    if wrong:
        return wrong, None
    a, b, choice = value["a"], value["b"], _CHOICES[value["choice"]]
    of_a, of_b = scenario_of(a), scenario_of(b)
    if of_a is None or of_b is None:
        unknown = [(key, value[key]) for key, scenario in (("a", of_a), ("b", of_b)) if scenario is None]
        return [
            f"{key}: this run has no conversation with the id {_shown(name)}" for key, name in unknown
        ], None
    if a == b:
        return [f"a and b are the same conversation, {_shown(a)}"], None
    if of_a != of_b:
        return [f"{_shown(a)} and {_shown(b)} are of different scenarios, {of_a} and {of_b}"], None
    if a > b:
        a, b, choice = b, a, _TURNED[choice]
    return [], ((a, b), HumanVote(rater=value["rater"], choice=choice, texts=value.get("texts")))


def _problem(key: str, value: Any) -> str | None:
    if key == "texts":
        if value is None or (isinstance(value, str) and _DIGEST.fullmatch(value)):
            return None
        return f"expected the digest of a pair, 16 hexadecimal digits in lower case, got {_shown(value)}"
    if not isinstance(value, str) or not value.strip():
        return f"expected a text, got {_shown(value)}"
    if key == "choice" and value not in _CHOICES:
        return f"expected a, b or tie, got {_shown(value)}"
    return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 62 else text[:60] + "…"

"""Secret leaks: a role says word for word what it cannot know, before a role that can.

A role cannot know the values of dimensions outside its view (`roles:` of the space), unless its view contains
the same words. The layout of a space says which phrases leak: each part of a list (`class discussions/asking
questions`), or a clause without the words that join it to its sentence (`and`, `otherwise`). Phrases need at
least two words and eight characters, as in self-play (`reading.detect.find_leak`). A leak of a common phrase
may be chance.

The share has the interval of `stats.intervals`, with scenarios as clusters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from edgen.core.registry import find
from edgen.plugin import (
    Measure,
    NeedsDataSet,
    Sample,
    SelfDescription,
    Share,
    Space,
    Tally,
    Total,
    Turn,
    Words,
    figure_kinds,
    part_of,
)
from edgen.plugin.families import Role
from edgen.plugin.measures import ArmResult, Examples, Panel, Shared
from edgen.plugin.protocols import SpaceRole, list_layout_roles
from edgen.plugin.spaces import find_layout
from edgen.plugin.texts import readable_name
from edgen.plugin.texts import words as cut_words
from edgen.reading import phrase_kinds
from edgen.reading.detect import find_leak, fold, is_secret
from edgen.reading.phrase_kinds import MOST

_LEADING = re.compile(r"(?:(?:and|but|or|then|who|might|may|he|she|they|will)\s+){1,5}", re.IGNORECASE)
_TRAILING = re.compile(r"\s+otherwise\W{0,5}\Z", re.IGNORECASE)


class Secret(NamedTuple):
    """A phrase that may leak, folded, and its words as one text."""

    phrase: str
    words: str


def _describe_protocols(found: Sequence[ArmResult[Any]]) -> str:
    """Return sentences on the meaning of leaks under these arms' protocols."""
    protocols = sorted({one.job["protocol"] for one in found})
    described = [part_of(find("protocol", name), SelfDescription) for name in protocols]
    roles = " or ".join(name.lower() for name in reversed(found[0].roles)) or "role"
    return " ".join(filter(None, (one.about_leaks.replace("{roles}", roles) for one in described)))


class LeaksMeasure(NeedsDataSet, Measure[Any]):
    name = "leaks"
    definition = (
        "Conversations in which a role says word for word a value of a dimension that it may not know (in "
        "Education Dialogue: the other side's preference or reaction), before anybody else said it. "
        "edgen's own definition. With one prompt for all roles (`protocol: oneshot`) the writer knows "
        "everything, and these are slips; with a prompt for each role (`protocol: selfplay`) a leak is a "
        "guess, and the turn is retried."
    )
    order = 9
    section = "behaviour"
    figures = figure_kinds("", lists=("dimensions",))
    aggregates = (
        Total(
            "conversations",
            "leaking",
            note="A role says word for word what it may not know. Under `protocol: oneshot` one writer plays "
            "all roles and knows everything: such a leak is a slip of the writer. Elsewhere each role sees "
            "only its own part.",
        ),
        Share(
            "share",
            "leaking",
            label="conversations",
            says="{conversations} = {it}",
            title="Says what only others know",
        ),
        Tally(
            "by",
            "dimensions",
            keys=lambda data: find_private_dimensions(data.roles),
            label="what it may not know",
            if_any=True,
            names=readable_name,
        ),
        Examples(
            "examples",
            "dimensions",
            label="for example",
            if_any=True,
            why="a role says word for word what it may not know",
        ),
    )
    panels = (Panel("leaks", "Leaks", ("share",), _describe_protocols),)  # fmt: skip
    compares = ()  # more tests would raise the adjusted p-values of the others

    def of_one(self, sample: Sample, words: Words, space: Space | None) -> Mapping[str, Any]:
        """Return the leaked dimensions, and their number."""
        return self._count_columns(
            _find_leaks(space.roles if space else list_layout_roles(sample.scenario.values)), sample, words
        )

    def column_reader(self, shared: Shared) -> Callable[[Sample, Words], Mapping[str, Any]]:
        """Return the reader of columns. A data set has its roles' dimensions even if its space is unknown."""
        return partial(self._count_columns, _Leaks(tuple(shared.data.roles)))

    def _count_columns(self, leaks: _Leaks, sample: Sample, words: Words) -> Mapping[str, Any]:
        found = sorted(leaks.find_leaked_dimensions(sample, words))
        return {"leaks": len(found), "leaking": bool(found), "dimensions": found}


def find_private_dimensions(roles: Sequence[SpaceRole]) -> tuple[str, ...]:
    """Return the dimensions that some roles see and others do not, in the order of roles."""
    everybody = [name for role in roles for name in role.sees]
    return tuple(dict.fromkeys(name for name in everybody if everybody.count(name) != len(roles)))


class _Leaks:
    """A finder of leaks. `roles`: the roles with the dimensions that each sees."""

    def __init__(self, roles: Sequence[SpaceRole]) -> None:
        self._roles = roles
        self._private = find_private_dimensions(roles)
        self._common = tuple(
            dict.fromkeys(name for role in roles for name in role.sees if name not in self._private)
        )

    def find_leaked_dimensions(self, sample: Sample, words: Words) -> set[str]:
        """Return the dimensions whose value is first said by a role that does not see it."""
        scenario = sample.scenario.values
        whole = "".join(words.spoken)
        found: dict[str, list[Secret]] = {}
        layout = find_layout(scenario)
        kinds = {} if layout is None else layout.leaks
        for name in self._private:
            # One search in all words together is fast and rules out most conversations.
            secrets = _list_secrets(kinds.get(name, "value"), scenario.get(name, "")[:MOST])
            if held := [one for one in secrets if one.words in whole]:
                found[name] = held
        leaked: set[str] = set()
        for role in self._roles if found else ():
            foreign = [(name, one) for name, of in found.items() if name not in role.sees for one in of]
            known = self._fold_known_text(scenario, role) if foreign else ""
            leaked |= {
                name
                for name, secret in foreign
                if secret.phrase not in known
                and _find_first_to_say(secret, sample.turns, words.spoken) == role.name
            }
        return leaked

    def _fold_known_text(self, scenario: Mapping[str, str], role: SpaceRole) -> str:
        """Return the text that the role knows, folded: its own values, then the values that all roles see."""
        own = [name for name in self._private if name in role.sees]
        return "\n".join(
            _fold("\n".join(scenario.get(name, "")[:MOST] for name in names)) for names in (own, self._common)
        )


@lru_cache(maxsize=16)
def _find_leaks(roles: tuple[SpaceRole, ...]) -> _Leaks:
    return _Leaks(roles)


def _find_first_to_say(secret: Secret, turns: Sequence[Turn], said: Sequence[str]) -> Role | None:
    for turn, words in zip(turns, said, strict=True):
        if secret.words in words and find_leak(turn.text, [secret.phrase], ()) is not None:
            return turn.role
    return None


_fold = lru_cache(maxsize=4096)(fold)


@lru_cache(maxsize=4096)
def _list_secrets(kind: str, value: str) -> tuple[Secret, ...]:
    """Return the secrets in a value. `kind`: the parts of it that leak (`LaidOutDimension.leaks`)."""
    pieces = dict.fromkeys(fold(piece) for piece in _list_pieces(kind, value))
    return tuple(Secret(piece, " ".join(cut_words(piece))) for piece in pieces if is_secret(piece))


def _list_pieces(kind: str, value: str) -> tuple[str, ...]:
    """Return the phrases in which speech would contain a value."""
    if kind == "parts":
        return tuple(phrase_kinds.split_parts(value))
    return (_strip_clause(value) if kind == "clause" else value,)


def _strip_clause(clause: str) -> str:
    """Return the part of a clause that a speaker may say: `gets rude` for `and gets rude otherwise`."""
    stripped = clause.strip()
    begins = _LEADING.match(stripped)
    return _TRAILING.sub("", stripped[begins.end() :] if begins else stripped)


MEASURE = LeaksMeasure()

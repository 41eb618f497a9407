"""Data sets as arms of a comparison, in constant memory.

A data set shares no scenario with other arms, so it is compared as an independent sample. Records that depend
on each other are one cluster. The first GROUPS clusters each form a group; further clusters are added to
these at random (the random groups of Wolter 2007, Introduction to Variance Estimation, chapter 2). So every
record counts, and intervals are over groups. Variety and near-duplicates are measured on one conversation of
each group, drawn uniformly (reservoir sampling: Vitter 1985, ACM Trans. Math. Softw. 11).
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, MutableMapping
from pathlib import Path

import msgspec

from edgen.core.registry import part_of
from edgen.core.values import Turn
from edgen.evaluation.comparison.arms import Arm, SettledConversation
from edgen.evaluation.comparison.result import DataFacts
from edgen.evaluation.data_sets.files import read_files
from edgen.evaluation.measuring import list_measures_to_compare
from edgen.evaluation.sample import Sample
from edgen.families.reader import RecordContents, ReportWords

GROUPS = 10_000
MOST_ROLES = 20  # maximum roles by name; further ones count as OTHERS
OTHERS = "others"
_LONGEST = 20_000  # maximum characters per conversation for measuring variety
_IN_MEMORY = 1 << 25  # maximum bytes of such conversations in memory; more go to a temporary file

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[Turn, ...]).decode


def load_arm(path: Path, label: str, spelling: MutableMapping[str, str], seed: int) -> Arm:
    """Return a data set as an arm. `spelling` maps case-folded role names to their spelling in the
    comparison; new ones are added.

    Raises DataError if the path cannot be read or its layout is unknown.
    """
    data = read_files(path, 0)
    assert data.family is not None
    reader = data.family
    kept = _KeptConversations(f"{seed}/{label}")
    words = part_of(reader, ReportWords)
    facts = DataFacts(layout=reader.title, unit=words.unit, depends=words.units_depend)
    counted = [facts]

    def iterate_outcomes() -> Iterator[SettledConversation]:
        kept.clear()
        groups = _Groups()
        records = 0
        for sample in data.samples():
            records += 1
            group = groups.of(sample.scenario.index)
            said = msgspec.structs.replace(sample, turns=_spell_roles(sample.turns, spelling))
            yield SettledConversation(
                scenario=group, replicate=kept.offer(group, said), status="accepted", said=said
            )
        counted[0] = msgspec.structs.replace(
            facts,
            records=records,
            clusters=groups.clusters,
            groups=groups.count,
            unread=dict(data.unread.most_common(_REASONS)),
            notes=(*data.notes, *filter(None, [data.describe_repeats()])),
        )

    return Arm(
        label=label,
        run=str(path),
        scenarios=0,
        outcomes=iterate_outcomes,
        turns=lambda group, _: kept.read_turns(group),
        draws=f"data set {label}",
        roles=(),
        measures=list_measures_to_compare(reader),
        probability_words=words.probability_words,
        marks_ends=part_of(reader, RecordContents).marks_ends,
        data=lambda: counted[0],
        kept=kept.iterate_conversations,
    )


_REASONS = 10


class _Groups:
    """The group of each cluster, by the index of its scenario. Groups count from 0."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}
        self._before = -1  # highest index so far: clusters are numbered by their first records
        self.clusters = 0

    @property
    def count(self) -> int:
        """The number of groups."""
        return len(self._known)

    def of(self, index: int) -> int:
        """Return the group of a cluster by its scenario's index."""
        if index > self._before:
            self._before = index
            self.clusters += 1
        if (found := self._known.get(index)) is not None:
            return found
        if len(self._known) < GROUPS:
            self._known[index] = len(self._known)
            return self._known[index]
        return _hash_index(index) % GROUPS


def _hash_index(index: int) -> int:
    """Return a pseudo-random number from the index, so that periods in a file do not matter."""
    return (index * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) >> 29


class _KeptConversations:
    """One conversation of each group, drawn uniformly."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._random = random.Random(self._seed)  # noqa: S311 - a repeatable draw
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY, prefix="edgen-")  # noqa: SIM115 - kept open
        self._seen: dict[int, int] = {}
        self._places: dict[int, tuple[int, int]] = {}
        self._end = 0

    def offer(self, group: int, said: Sample) -> int:
        """Draw whether to keep a conversation; return its number in the group, from 0."""
        number = self._seen.get(group, 0)
        self._seen[group] = number + 1
        if number == 0 or self._random.random() * (number + 1) < 1:
            data = _encode(_shorten_turns(said.turns))
            self._file.seek(self._end)
            self._file.write(data)
            self._places[group] = (self._end, len(data))
            self._end += len(data)
        return number

    def read_turns(self, group: int) -> tuple[Turn, ...]:
        """Return the kept conversation of a group."""
        place, size = self._places[group]
        self._file.seek(place)
        return _decode(self._file.read(size))

    def iterate_conversations(self, groups: int) -> Iterator[tuple[int, tuple[Turn, ...]]]:
        """Yield (group, turns) of the first `groups` groups."""
        for group in range(min(groups, len(self._places))):
            yield group, self.read_turns(group)


def _shorten_turns(turns: tuple[Turn, ...]) -> list[dict[str, str]]:
    """Return roles and texts of the first turns, up to LONGEST characters."""
    found, left = [], _LONGEST
    for turn in turns:
        found.append({"role": turn.role, "text": turn.text[:left]})
        left -= len(turn.text)
        if left <= 0:
            break
    return found


def _spell_roles(turns: tuple[Turn, ...], spelling: MutableMapping[str, str]) -> tuple[Turn, ...]:
    """Return the turns with the comparison's spelling of roles."""
    return tuple(
        turn if (role := _spell_role(turn.role, spelling)) == turn.role
        else msgspec.structs.replace(turn, role=role)
        for turn in turns
    )  # fmt: skip


def _spell_role(role: str, spelling: MutableMapping[str, str]) -> str:
    key = role.casefold()
    if key not in spelling:
        if len(spelling) >= MOST_ROLES:
            return OTHERS
        spelling[key] = role
    return spelling[key]

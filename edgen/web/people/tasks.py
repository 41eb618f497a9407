"""Units of a task, given out to people one at a time: order, number of answers, and checks of attention.

Everybody goes through the units in the same blocks, so that people overlap. The order within a block differs
by person. Every few answers there is a check: a unit with a known answer, or an earlier unit again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from edgen.core.errors import UsageError
from edgen.preferences.vote_units import draw_number, make_key
from edgen.store.people import People, UnitAnswer
from edgen.store.run_reader import RunReader
from edgen.store.several_runs import find_pairs_place, open_together
from edgen.web.sources import IndexedRun, make_stamp

U = TypeVar("U")
C = TypeVar("C")
_BLOCK = 10  # units in a block, whose order differs by person
_PATIENCE = 3_600.0  # seconds until an unanswered unit is also given to another person
_LOOK_AGAIN = 2.0  # seconds between two looks for changes of the run
_MOST_LOADED = 4_096  # most units whose content is cached
_APART = 5  # fewest answers between a unit and its repeat
REPEAT, KNOWN = "#again", "#known"


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a task, stored in the run."""

    per_unit: int = 1
    """People who answer each unit."""
    guidelines: str = ""
    """A text shown next to each unit."""
    check_every: int = 10
    """Answers between two checks of attention; 0: none."""
    known: dict[str, Any] = {}
    """Known answers of some units, which every person gets."""
    against: tuple[str, ...] = ()
    """The folders of other runs, if people vote on pairs between runs."""
    labels: dict[str, Any] | None = None
    """The label set of a task of labels."""
    whole: bool = False
    """Whole conversations are labelled, not turns."""


def read_setup(people: People | None, task: str) -> Setup:
    """Return the settings of a task."""
    kept = None if people is None else people.read_settings(task)
    return Setup() if kept is None else msgspec.convert(kept, Setup)


def find_base(unit: str) -> str:
    """Return the unit of a check."""
    return unit.partition("#")[0]


class RunUnits(Generic[U, C]):
    """The units of a task in one or several runs, at present. Thread-safe.

    `listed` yields the units with their names; `loaded` returns a unit's content, None if the runs have other
    texts now.
    """

    def __init__(
        self,
        runs: Sequence[IndexedRun],
        listed: Callable[[RunReader], Iterable[tuple[str, U]]],
        loaded: Callable[[RunReader, U], C | None],
    ) -> None:
        self._runs, self._listed, self._loaded = runs, listed, loaded
        self._paths = [run.path for run in runs]
        self._lock = threading.Lock()
        self._reader: RunReader | None = None
        self._stamp = ""
        self._next_look = 0.0
        self._units: Mapping[str, U] = {}
        self._order: tuple[str, ...] = ()
        self._content: dict[str, C | None] = {}

    def list_order(self) -> tuple[str, ...]:
        """Return the names of all units, in the order in which they are given out. Raises EdgenError."""
        with self._lock:
            self._refresh()
            return self._order

    def read_content(self, name: str) -> C | None:
        """Return the shown content of a unit; None if the run has other texts now."""
        with self._lock:
            self._refresh()
            if name not in self._units or self._reader is None:
                return None
            if name not in self._content:
                if len(self._content) >= _MOST_LOADED:
                    self._content.clear()
                self._content[name] = self._loaded(self._reader, self._units[name])
            return self._content[name]

    def _refresh(self) -> None:
        """Read the units again if the run has changed, at most every few seconds."""
        now = time.monotonic()
        if now < self._next_look:
            return
        stamp = "/".join(
            (*(run.find_state() for run in self._runs), make_stamp([find_pairs_place(self._paths).pairs]))
        )
        if stamp != self._stamp or self._reader is None:
            reader = open_together(self._paths)
            try:
                units = dict(self._listed(reader))
            except BaseException:
                reader.__exit__()
                raise
            if self._reader is not None:
                self._reader.__exit__()
            self._reader, self._units, self._stamp = reader, units, stamp
            self._order = tuple(sorted(units, key=lambda name: draw_number("order", name)))
            self._content = {}
        took = time.monotonic() - now
        self._next_look = now + took + max(_LOOK_AGAIN, 20 * took)


def read_own_answers(people: People, task: str, person: str) -> dict[str, UnitAnswer]:
    """Return a person's answers that count, by unit, the latest last."""
    latest: dict[str, UnitAnswer] = {}
    for one in people.list_answers(task, person):
        latest.pop(one.unit, None)
        if one.value is not None:
            latest[one.unit] = one
    return latest


def count_answered(own: Iterable[str]) -> int:
    """Return the number of units that a person answered or skipped, without checks."""
    return sum("#" not in unit for unit in own)


class Queue:
    """A queue that gives out the units of a task. Thread-safe."""

    def __init__(self, people: People, task: str, units: RunUnits[Any, Any]) -> None:
        self._people, self.task, self._units = people, task, units
        self._full: set[str] = set()
        self._cleared = 0.0

    def choose_unit(self, person: str, now: float) -> str | None:
        """Return the person's next unit; None if none is left. Raises EdgenError."""
        setup = read_setup(self._people, self.task)
        own = read_own_answers(self._people, self.task, person)
        for unit, _, _ in self._people.list_assigned(self.task, person):
            if unit not in own and self._units.read_content(find_base(unit)) is not None:
                return unit
        order = self._units.list_order()
        return self._check(person, own, setup, now) or self._open(person, own, setup, order, now)

    def _open(
        self, person: str, own: Mapping[str, UnitAnswer], setup: Setup, order: tuple[str, ...], now: float
    ) -> str | None:
        for _ in range(2):
            for unit in _iterate_blocks(order, person):
                if unit in self._full or unit in own or (setup.check_every and unit in setup.known):
                    continue
                if self._units.read_content(unit) is None:
                    continue
                if self._people.assign(self.task, unit, person, setup.per_unit, now, _PATIENCE):
                    return unit
                self._full.add(unit)
            if now - self._cleared < _LOOK_AGAIN:
                break
            self._cleared = now  # another person may have given a unit back
            self._full.clear()
        return None

    def _check(self, person: str, own: Mapping[str, UnitAnswer], setup: Setup, now: float) -> str | None:
        """Return an attention check, if one is due."""
        done = sum("#" in unit for unit in own)
        if not setup.check_every or count_answered(own) // setup.check_every <= done:
            return None
        answered = [unit for unit in own if "#" not in unit]
        again = [unit for unit in answered[:-_APART] if not _is_skip(own[unit].value)]
        known = [f"{unit}{KNOWN}" for unit in setup.known]
        for kind in (known, [f"{unit}{REPEAT}" for unit in again]):
            free = [
                unit
                for unit in kind
                if unit not in own and self._units.read_content(find_base(unit)) is not None
            ]
            if free:
                unit = min(free, key=lambda one: draw_number("check", one, person))
                self._people.assign(self.task, unit, person, 1 << 30, now)
                return unit
        return None

    def find_held_unit(self, person: str, key: str) -> str:
        """Return the unit that a person holds under a key. Raises UsageError."""
        for unit, _, _ in self._people.list_assigned(self.task, person):
            if make_key(unit) == key:
                return unit
        raise UsageError("This page is about something that was not given to you; load it again.")

    def undo(self, person: str, form: str, now: float) -> bool:
        """Withdraw a person's last answer that counts; return whether there was one."""
        own = read_own_answers(self._people, self.task, person)
        last = max(own.values(), key=lambda one: one.n, default=None)
        if last is None:
            return False
        return self._people.answer(
            self.task, last.unit, person, form, None, shown=None, seconds=None, now=now
        )

    def give_back(self, unit: str, person: str) -> None:
        """Make a unit that a person skipped available to others."""
        self._people.release(self.task, unit, person)
        self._full.discard(unit)


def _iterate_blocks(order: tuple[str, ...], person: str) -> Iterator[str]:
    for start in range(0, len(order), _BLOCK):
        yield from sorted(order[start : start + _BLOCK], key=lambda unit: draw_number("block", unit, person))


def skip_of(reason: str) -> dict[str, str]:
    """Return the stored answer of a person who skips a unit."""
    return {"skip": reason}


def _is_skip(value: Any) -> bool:
    return isinstance(value, dict) and "skip" in value

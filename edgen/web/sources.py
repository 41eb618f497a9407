"""The runs that the pages show, each with an index that is built in the background."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgen.api.runs import RunFacts, list_runs
from edgen.core.errors import EdgenError, UsageError
from edgen.core.text import safe
from edgen.core.user_cache import cache_file
from edgen.core.values import Turn
from edgen.store.conversation_index import ConversationIndex, Entry, write_index
from edgen.store.people import People, has_people
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader

_PREVIEW = 160  # characters of a conversation that lists show
_LONGEST = 200_000  # characters of a conversation that are searched
_LONGEST_VALUE = 200  # characters of a facet's value
_FORMAT = "1"  # of the index; another one is built anew


class IndexedRun:
    """A run, and its index. `done` of `planned` conversations are indexed; `problem` says why none are."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.slug = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogatepass")).hexdigest()[:12]
        self.done, self.planned = 0, 0
        self.problem: str | None = None
        self._lock = threading.Lock()
        self._stamp: str | None = None
        self._index: ConversationIndex | None = None
        self._at_work: threading.Thread | None = None
        self._people: People | None = None

    def people(self, *, create: bool = False) -> People | None:
        """Return the people of the run; None if nobody was invited. `create`: make their file."""
        with self._lock:
            if self._people is None and (create or has_people(self.path)):
                self._people = People(self.path)
            return self._people

    def index(self) -> ConversationIndex | None:
        """Return the index of the run as it is now; None while it is being built, which this call begins.

        A finished index of an earlier state is returned meanwhile.
        """
        with self._lock:
            stamp = self.state()
            if stamp != self._stamp and (self._at_work is None or not self._at_work.is_alive()):
                self._stamp, self.problem, self.done = stamp, None, 0
                path = _index_file(f"{self.slug}-{stamp}")
                if (index := ConversationIndex(path)).is_finished():
                    self._index = index
                else:
                    self._at_work = threading.Thread(target=self._build, args=(path,), daemon=True)
                    self._at_work.start()
            return self._index

    def wait(self) -> ConversationIndex | None:
        """Return the index, once it is built."""
        found = self.index()
        if self._at_work is not None:
            self._at_work.join()
        return self._index or found

    def state(self) -> str:
        """Return what changes when the run does: sizes and times of its ledgers and labels."""
        digest = hashlib.sha256(_FORMAT.encode())
        rundir = RunFolder(self.path)
        arms = sorted(rundir.arms_folder.glob("*/run.db"))
        for path in (rundir.ledger, *arms, *sorted(rundir.layers.glob("*/labels.jsonl")), rundir.pairs):
            for file in (path, path.with_name(f"{path.name}-wal")):
                try:
                    facts = file.stat()
                except OSError:
                    continue
                digest.update(
                    f"{file}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode("utf-8", "surrogatepass")
                )
        return digest.hexdigest()[:16]

    def _build(self, path: Path) -> None:
        try:
            for done in write_index(path, self._entries()):
                self.done = done
            self._index = ConversationIndex(path)
            for older in path.parent.glob(f"{self.slug}-*.db"):
                if older != path:
                    older.unlink(missing_ok=True)
        except (EdgenError, OSError) as problem:
            self.problem = safe(str(problem))

    def _entries(self) -> Iterator[tuple[Entry, str, Mapping[str, Iterable[str]]]]:
        with RunReader(self.path) as reader:
            self.planned = sum(view.status.planned for view in reader.views.values())
            for one in reader.conversations():
                facets = _facets_of(one.scenario.as_row())
                facets |= {"outcome": ["accepted"], "split": [one.split]}
                if one.candidate.arm:
                    facets["arm"] = [one.candidate.arm]
                for name, value in (one.candidate.outcome or {}).items():
                    if isinstance(value, str | bool):
                        facets[f"outcome.{name}"] = [str(value)]
                for layer, units in one.labels.items():
                    facets[f"labels.{layer}"] = sorted({label for unit in units for label in unit.labels})
                turns, values = one.candidate.turns, one.scenario.values
                entry = _entry(one.candidate.id, values, turns, "accepted", one.candidate.probability)
                yield entry, _said(turns, values), facets
            yield from self._refused(reader)

    def _refused(self, reader: RunReader) -> Iterator[tuple[Entry, str, Mapping[str, Iterable[str]]]]:
        from edgen.families.base import record_id

        for arm, view in reader.views.items():
            name = f"{reader.name}.{arm}" if arm else reader.name
            for index, task, status, reason, _, reply in view.refused():
                if not isinstance(task, int):
                    continue
                scenario = reader.scenario(index)
                text = reply.text if reply is not None else ""
                facets = _facets_of(scenario.as_row())
                facets |= {"outcome": [str(status.value)], "reason": [reason or "unknown"]}
                if arm:
                    facets["arm"] = [arm]
                entry = Entry(
                    id=record_id(name, index, task),
                    title=_title(scenario.values),
                    preview=" ".join(text[:_PREVIEW].split()),
                    status=f"{status.value}: {reason}" if reason else str(status.value),
                )
                yield entry, f"{text[:_LONGEST]}\n{_title(scenario.values)}", facets


def _entry(
    identifier: str, values: Mapping[str, str], turns: Sequence[Turn], status: str, probability: float | None
) -> Entry:
    return Entry(
        id=identifier,
        title=_title(values),
        preview=" ".join(turns[0].text[:_PREVIEW].split()) if turns else "",
        status=status,
        turns=len(turns),
        words=sum(len(turn.text.split()) for turn in turns),
        probability=probability,
    )


def _title(values: Mapping[str, str]) -> str:
    return " · ".join(value[:_LONGEST_VALUE] for value in list(values.values())[:2])


def _said(turns: Sequence[Turn], values: Mapping[str, str]) -> str:
    return "\n".join([*values.values(), *(turn.text for turn in turns)])[:_LONGEST]


def _facets_of(row: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the values of a scenario by name; those that hold texts, numbers or truths."""
    return {
        name: [str(value)[:_LONGEST_VALUE]]
        for name, value in row.items()
        if name != "index" and isinstance(value, str | int | float)
    }


def _index_file(name: str) -> Path:
    """Return the place of an index: the user's cache, or a temporary folder where there is none."""
    cached = cache_file(f"web/{name}.db", os.environ)
    if cached is not None:
        try:
            cached.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            pass
        else:
            return cached
    return Path(tempfile.mkdtemp(prefix="edgen-web-")) / f"{name}.db"


class Sources:
    """All runs at the given paths: run folders, or folders of runs. New ones are found when pages are asked
    for."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Raise UsageError for a path that is no folder."""
        self._paths = paths
        self._known: dict[Path, IndexedRun] = {}
        for path in paths:
            list_runs(path)

    def runs(self) -> list[tuple[IndexedRun, RunFacts]]:
        """Return every run with its present state, the newest first."""
        found = []
        for path in self._paths:
            try:
                facts = list_runs(path)
            except UsageError:  # removed meanwhile
                continue
            for one in facts:
                place = Path(one.run)
                found.append((self._known.setdefault(place, IndexedRun(place)), one))
        return sorted(found, key=lambda pair: pair[1].age_seconds)

    def find(self, slug: str) -> IndexedRun | None:
        """Return the run of that short name; None if there is none."""
        known = {run.slug: run for run in self._known.values()}
        return known.get(slug) or {run.slug: run for run, _ in self.runs()}.get(slug)

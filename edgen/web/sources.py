"""The runs and data sets that the pages show, each with an index that a process builds in the background."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgen.api.runs import RunFacts, list_runs
from edgen.core.errors import DataError, UsageError
from edgen.core.resources import cache_file
from edgen.core.text import escape_for_terminal
from edgen.families.record_files import make_unknown_layout_error, open_records
from edgen.store.conversation_index import ConversationIndex
from edgen.store.people import People, has_people
from edgen.store.people.mailbox import Mailbox, has_mailbox, is_desk
from edgen.store.run_folder import RunFolder
from edgen.validation.reading import find_inputs
from edgen.web.indexing import IndexingReport

_FORMAT = "4"  # version of the index's format; an index of another version is built anew
_REST = 5  # how often the build time must pass before an index is rebuilt
_PAUSE = 1.0  # seconds between two looks for an unknown run
_MOST_REST = 120.0  # most seconds before an index is rebuilt
_CHILDREN: set[subprocess.Popen[bytes]] = set()


class IndexedRun:
    """A run or a data set, and its index. `done` of `planned` conversations are indexed; `problem` is the
    reason why none are."""

    kind = "run"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = escape_for_terminal(path.name)
        self.slug = _make_slug(path)
        self.done, self.planned = 0, 0
        self.problem: str | None = None
        self._lock = threading.Lock()
        self._stamp: str | None = None
        self._index: ConversationIndex | None = None
        self._at_work: threading.Thread | None = None
        self._began, self._took = 0.0, 0.0
        self._people: People | None = None
        self._mailbox: Mailbox | None = None
        self.pulse: Any = None  # the CallsByMinute of the page of all runs

    def open_people(self, *, create: bool = False) -> People | None:
        """Return the people of the run; None if nobody was invited. `create`: make their file."""
        with self._lock:
            if self._people is None and (create or has_people(self.path)):
                self._people = People(self.path)
            return self._people

    def open_mailbox(self) -> Mailbox | None:
        """Return the mailbox of the run at present; None if it never held a request."""
        with self._lock:
            if not has_mailbox(self.path):
                self._mailbox = None
            elif self._mailbox is None or not self._mailbox.is_current():  # the folder was replaced
                self._mailbox = Mailbox(self.path)
            return self._mailbox

    def open_index(self) -> ConversationIndex | None:
        """Return the index; None while the first index is being built. This call starts the build.

        A finished index of an earlier state is returned until a newer one is built.
        """
        with self._lock:
            rested = time.monotonic() - self._began > min(self._took * _REST, _MOST_REST)
            at_work = self._at_work is not None and self._at_work.is_alive()
            if not at_work and (self._index is None or rested):
                self._renew()
            return self._index

    def _renew(self) -> None:
        stamp = self.find_state()
        if stamp == self._stamp:
            return
        self._stamp, self.problem, self.done = stamp, None, 0
        path = self.find_index_path(stamp)
        if (index := ConversationIndex(path)).is_finished():
            self._index = index
            return
        self._began = time.monotonic()
        self._at_work = threading.Thread(target=self._build, args=(path,), daemon=True)
        self._at_work.start()

    def find_index_path(self, stamp: str | None = None) -> Path:
        """Return the file of the index for a state, by default the present one."""
        return _find_index_file(f"{self.slug}-{stamp or self.find_state()}")

    def wait(self, seconds: float | None = None) -> ConversationIndex | None:
        """Return the index after its build; after `seconds`, return what `open_index` does."""
        found = self.open_index()
        if self._at_work is not None:
            self._at_work.join(seconds)
        return self._index or found

    def list_files(self) -> Iterable[Path]:
        """Return the files whose sizes and times show changes."""
        rundir = RunFolder(self.path)
        arms = sorted(rundir.arms_folder.glob("*/run.db"))
        ledgers = (rundir.ledger, *arms)
        yield from ledgers
        yield from (path.with_name(f"{path.name}-wal") for path in ledgers)
        yield from sorted(rundir.layers.glob("*/labels.jsonl"))

    def find_state(self) -> str:
        """Return a text that changes whenever the files change."""
        return make_stamp(self.list_files())

    def _build(self, path: Path) -> None:
        """Build an index in a process, and use it when it is finished."""
        command = [sys.executable, "-P", "-m", "edgen.web.indexing", self.kind, str(self.path), str(path)]
        last = IndexingReport(problem="the index was not completed; reload the page to try again.")
        # a command of edgen's own; paths are arguments, not words of a shell
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:  # noqa: S603
            _CHILDREN.add(child)
            assert child.stdout is not None
            for line in child.stdout:
                last = msgspec.json.decode(line, type=IndexingReport)
                self.done, self.planned = last.done, last.planned
        _CHILDREN.discard(child)
        self._took = time.monotonic() - self._began
        if (index := ConversationIndex(path)).is_finished():
            self._index, self.problem = index, None
            for older in path.parent.glob(f"{self.slug}-*.db"):
                if older != path:
                    older.unlink(missing_ok=True)
        else:
            self.problem = last.problem or "the index was not completed; reload the page to try again."
            self._stamp = None if last.problem is None else self._stamp


class IndexedFiles(IndexedRun):
    """A data set in a file, or in the files of a folder. `title`: its layout."""

    kind = "files"

    def __init__(self, path: Path, title: str) -> None:
        super().__init__(path)
        self.title = title

    def list_files(self) -> Iterable[Path]:
        """Return the files of the data set."""
        try:
            return find_inputs(self.path).files
        except DataError:
            return ()


class FileRequests(IndexedRun):
    """Requests to people about a file, in a folder without conversations."""

    kind = "asked"
    title = "Questions to people about a file"


def make_stamp(files: Iterable[Path]) -> str:
    """Return a text that changes with the size or time of any of these files."""
    digest = hashlib.sha256(_FORMAT.encode())
    for file in files:
        try:
            facts = file.stat()
        except OSError:
            continue
        digest.update(f"{file}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]


def stop_building() -> None:
    """End every process that builds an index."""
    for child in [*_CHILDREN]:
        child.terminate()


def _make_slug(path: Path) -> str:
    """Return the short name of a run or data set in addresses."""
    return hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _find_index_file(name: str) -> Path:
    """Return the path of an index: in the user's cache, or in a temporary folder without a cache."""
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
    """All runs at the given paths (run folders, or folders of runs), and the data sets in files. Requests of
    pages find new runs."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Raise UsageError for a path that does not exist, and DataError for a file of an unknown layout."""
        self._known: dict[Path, IndexedRun] = {}
        self._looking = threading.Lock()
        self._look_again = 0.0
        self.data = [found for path in paths if (found := _read_data(path)) is not None]
        self._paths = [
            path for path in paths if path.is_dir() and path not in {one.path for one in self.data}
        ]
        for path in self._paths:
            list_runs(path)

    def list_runs(self) -> list[tuple[IndexedRun, RunFacts]]:
        """Return every run in its present state, the newest first, also before its partitions are merged."""
        found = []
        for path in self._paths:
            try:
                facts = list_runs(path, divided=True)
            except UsageError:  # deleted in the meantime
                continue
            for one in facts:
                place = Path(one.run)
                if place not in self._known:
                    self._known[place] = IndexedRun(place)
                found.append((self._known[place], one))
        return sorted(found, key=lambda pair: pair[1].age_seconds)

    def list_names(self) -> list[tuple[str, str]]:
        """Return the short name and the name of every run and data set shown so far."""
        return [(one.slug, one.name) for one in (*self.data, *self._known.values())]

    def find_with_others(self, run: IndexedRun, others: Sequence[str]) -> list[IndexedRun]:
        """Return a run with the runs in these folders. Raises UsageError for a folder that is not shown here:
        a run's own files name it, but only folders that the owner named are opened."""
        runs = [run]
        for folder in others:
            other = self.find(_make_slug(Path(folder)))
            if other is None:
                raise UsageError(
                    f"people vote on pairs between {run.path} and {folder}, which is not shown here; start "
                    f"`edgen web {run.path} {folder}`."
                )
            runs.append(other)
        return runs

    def find(self, slug: str) -> IndexedRun | None:
        """Return the run or data set of that short name; None if there is none.

        For an unknown name, the folders are read again, since it may be a new run's, but at most once a
        second, since anybody can ask.
        """
        with self._looking:  # right after a start, the first request looks, and the others wait for it
            for _ in range(2):
                known = {one.slug: one for one in (*self.data, *self._known.values())}
                if slug in known or time.monotonic() < self._look_again:
                    return known.get(slug)
                self._look_again = time.monotonic() + _PAUSE
                self.list_runs()
            return None


def _read_data(path: Path) -> IndexedFiles | FileRequests | None:
    """Return the data set at a path; None for a folder of runs. Raises UsageError and DataError."""
    if not path.exists():
        raise UsageError(
            f"{path}: there is no such file or folder; name a run, a folder of runs, or a file of "
            "conversations."
        )
    if is_desk(path):
        return FileRequests(path)
    if path.is_dir() and list_runs(path):
        return None
    try:
        files = find_inputs(path).files
    except DataError:
        return None  # a folder that may receive runs
    readers = [open_records(file).reader for file in files[:1]]
    if not readers or readers[0] is None:
        raise make_unknown_layout_error(path)
    return IndexedFiles(path, readers[0].title)

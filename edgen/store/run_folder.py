"""A run's folder: names of its contents, and the resolved job.

    job.yaml  inputs/<template> <space>  run.db  run.lock  shards/  rejected.jsonl  previous/<n>/
    comparisons/<a>-vs-<b>.json  report.html
    pairs/pairs.jsonl  pairs/votes.jsonl  pairs/judged/<judge>.db .json  pairs/rollouts/<agents>.db .json
    pairs/against/<a>-vs-<b>/pairs.jsonl judged/<judge>.db .json (pairs with other runs)
    pairs/<set>/pairs.jsonl (a named set of pairs; see `edgen.store.pairs_file`)
    adherence/<judge>.db .json
    layers/<layer>/layer.json labels.jsonl annotators/<annotator>.db .json
    candidates/<kind>.jsonl <kind>/<writer>.db .json
    asked/<asker>.jsonl <asker>/<answerer>.db .json
    people/people.db (see `edgen.store.people`)
    arms/numbers.json  arms/<name>/ (each a run)
    digests.json (of all but ledgers, shards and reports: see `edgen.core.kept_files`)

`job.yaml` names its inputs inside the folder, so the run can be generated again elsewhere. A run's folder may
be foreign: if any of edgen's files in it is a link, a pipe or a device, the run is refused.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec
import yaml

from edgen.core.errors import RunError
from edgen.core.files import find_target
from edgen.core.kept_files import (
    DIGESTS,
    forget_digests,
    refuse_links,
    remove_temporary_files,
    require_kept,
    settle_digests,
    write_kept_lines,
    write_kept_texts,
)
from edgen.core.system import require_locks
from edgen.store import locks
from edgen.store.near_runs import find_near_runs

_IN_PLACE = (
    "run.lock",
    "run.db",
    "run.db-wal",
    "run.db-shm",
    "run.db-journal",
    "run.db-acked",
)  # files that are written in place
_MADE = ("job.yaml", "inputs", "run.batches", "shards", "rejected.jsonl", "previous", "merged")
_MADE_OF_IT = (
    DIGESTS,
    "pairs",
    "adherence",
    "layers",
    "candidates",
    "asked",
    "comparisons",
    "people",
    "report.html",
)
_SWEPT = (*_IN_PLACE, *_MADE, *_MADE_OF_IT)
_OWN = frozenset((*_SWEPT, "arms"))
SAMPLE = "sample"  # in the facts of an asker: number of conversations of each arm; None: all


class RunFolder:
    """Paths in a run's folder. Creating one makes no files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.job = path / "job.yaml"
        self.inputs = path / "inputs"
        self.ledger = path / "run.db"
        self.lock = path / "run.lock"
        self.shards = path / "shards"
        self.rejected = path / "rejected.jsonl"
        self.previous = path / "previous"
        self.arms_folder = path / "arms"
        self.arm_numbers = path / "arms" / "numbers.json"
        self.against = path / "pairs" / "against"
        self.place_pairs(path / "pairs")
        self.adherence = path / "adherence"
        self.layers = path / "layers"
        self.candidates = path / "candidates"
        self.asked = path / "asked"
        self.comparisons = path / "comparisons"
        self.report = path / "report.html"

    def place_pairs(self, folder: Path) -> None:
        """Use a folder for pairs, votes, and the results of judges and rollouts."""
        self.pairs_folder = folder
        self.judged, self.rollouts = folder / "judged", folder / "rollouts"
        self.pairs, self.votes = folder / "pairs.jsonl", folder / "votes.jsonl"

    def arm(self, name: str) -> RunFolder:
        """Return the folder of one arm. The only arm of a job without `arms:` is "", and its folder is the
        run's."""
        return RunFolder(self.arms_folder / name) if name else self

    @property
    def whole(self) -> RunFolder | None:
        """The run that this folder is an arm of; None if it is not an arm."""
        real = self.path.resolve()
        whole = RunFolder(real.parent.parent)
        return whole if real.parent == whole.arms_folder and whole.job.exists() else None

    @property
    def has_layers(self) -> bool:
        """True if the run, or the run that this folder is an arm of, may have layers."""
        return self.layers.exists() or ((whole := self.whole) is not None and whole.layers.exists())

    def arms(self) -> list[tuple[str, RunFolder]]:
        """Return name and folder of each arm of the job in this folder, started or not: at least one."""
        from edgen.config import load_kept_job

        names = ("",) if self.ledger.exists() else load_kept_job(self.job).arm_names
        return [(name, self.arm(name)) for name in names]

    def list_begun_arms(self) -> list[tuple[str, RunFolder]]:
        """Return the arms that have a ledger, or may have one. Raises RunError if there is none."""
        begun = [(name, own) for name, own in self.arms() if not name or own.ledger.exists()]
        if not begun:
            raise RunError(f"{self.path}: no arm of this run has started; generate it first.")
        return begun

    def ledgers(self) -> list[Path]:
        """Return every ledger in this run: its own or its arms', and those of judges, pairs, adherence,
        rollouts, annotators, writers and other askers."""
        own = [path for path in (self.ledger, *sorted(self.arms_folder.glob("*/run.db"))) if path.exists()]
        return own + [path for folder in self.list_asker_folders() for path in _list_ledgers(folder)]

    def list_asker_folders(self) -> list[Path]:
        """Return the folders of ledgers of judges, pairs, adherence, rollouts, annotators, writers and other
        askers."""
        annotators = sorted(self.layers.glob("*/annotators"))
        others = sorted(self.against.glob("*/judged"))
        return [
            self.path / "pairs" / "judged",
            self.path / "pairs" / "rollouts",
            self.adherence,
            *others,
            *annotators,
            *self.writers(),
            *self.askers(),
        ]

    def judge_ledgers(self) -> list[Path]:
        """Return the ledger of each judge of pairs."""
        return _list_ledgers(self.judged)

    def rollout_ledgers(self) -> list[Path]:
        """Return the ledger of each run or arm whose turns had rollouts."""
        return _list_ledgers(self.rollouts)

    def annotator_ledgers(self) -> list[Path]:
        """Return the ledger of each annotator of each layer."""
        folders = sorted(self.layers.glob("*/annotators"))
        return [path for folder in folders for path in _list_ledgers(folder)]

    def writer_ledgers(self) -> list[Path]:
        """Return the ledger of each writer of candidate texts, by kind."""
        return [path for folder in self.writers() for path in _list_ledgers(folder)]

    def list_asker_ledgers(self) -> list[Path]:
        """Return the ledger of each other asker, by its name."""
        return [path for folder in self.askers() for path in _list_ledgers(folder)]

    def askers(self) -> list[Path]:
        """Return the folders of other askers' ledgers, one for each asker."""
        return sorted(path for path in self.asked.glob("*") if path.is_dir())

    def locate_written_texts(self, kind: str) -> Path:
        """Return the path of model-written texts of a kind ("paraphrases", "wrong")."""
        return self.candidates / f"{kind}.jsonl"

    def writers(self) -> list[Path]:
        """Return the folders of writers' ledgers, one per kind of texts."""
        return sorted(path for path in self.candidates.glob("*") if path.is_dir())

    def note(self, path: Path, facts: Any) -> None:
        """Write facts as a JSON file of this run, with its digest."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.write_texts({path: json.dumps(facts, indent=2, ensure_ascii=False) + "\n"})

    def write_texts(self, texts: Mapping[Path, str]) -> None:
        """Write changed files of this run, with their digests."""
        write_kept_texts(self.path, texts)

    def write_lines(self, path: Path, lines: Iterable[bytes], *, grows: bool = False) -> int:
        """Write a file of lines of this run, with its digest; return the number of lines. `grows`: people may
        append lines."""
        return write_kept_lines(self.path, path, lines, grows=grows)

    def number_arms(self, arms: Iterable[str] = ()) -> list[str]:
        """Return every arm that this run ever had, in order of first appearance, and store `arms` after them.
        Their positions number the candidates, so they never change."""
        require_kept(self.arm_numbers, f"`edgen validate {self.path} --restore` puts back what it was.")
        try:
            known = msgspec.json.decode(self.arm_numbers.read_bytes(), type=list[str])
        except FileNotFoundError:
            known = []
        except (OSError, ValueError) as problem:
            raise RunError(f"{self.arm_numbers}: it cannot be read as a list of names ({problem}).") from None
        new = [arm for arm in arms if arm not in known]
        if new:
            self.arms_folder.mkdir(exist_ok=True)
            self.write_texts({self.arm_numbers: json.dumps([*known, *new])})
        return [*known, *new]

    @property
    def partitions_folder(self) -> Path:
        """The folder of the run's partitions, which exists until they are merged."""
        path = self.path.resolve() if self.path.name in ("", "..") else self.path  # "." has no name
        return path.parent / f"{path.name}.partitions"

    def partitions(self) -> list[RunFolder]:
        """Return the runs of its partitions."""
        found = [path for path in self.partitions_folder.glob("*") if path.name.isdecimal()]
        return [RunFolder(path) for path in sorted(found, key=lambda path: int(path.name))]

    @property
    def begun(self) -> bool:
        """True if any request was made here."""
        return bool(self.ledgers())

    @property
    def exists(self) -> bool:
        """True if a run was ever started here, even if dangling links replace its files."""
        return any(path.exists() or path.is_symlink() for path in (self.ledger, self.job))

    def refuse_links(self) -> None:
        """Raise RunError if any of edgen's files in the folder is a link, a pipe or a device."""
        refuse_links(self.path, _OWN)

    def require(self) -> Self:
        """Return this folder. Raises RunError if no run was ever started here, or as `refuse_links` does."""
        self.refuse_links()
        if self._is_project():
            raise RunError(
                f"{self.path}: this is a project, not a run. Its run is the folder outputs/<name>, with the "
                f"name in {self.job}; `edgen generate {self.job}` makes it."
            )
        if self.job.exists():
            return self
        if self.path.is_file():
            raise RunError(
                f"{self.path}: this is a file, not a run. A job's run is the folder outputs/<name>, with "
                "the name in the job; `edgen generate JOB` makes it."
            )
        meant = " or ".join(map(str, find_near_runs(self.path)[:3]))
        raise RunError(
            f"{self.path}: there is no run here; `edgen generate JOB -o {self.path}` makes one."
            + (f" Did you mean {meant}?" if meant else "")
        )

    def _is_project(self) -> bool:
        """Return whether the folder is a project: it has a job that a person wrote, and no run."""
        parts = (self.ledger, self.lock, self.shards, self.inputs, self.arms_folder, self.path / DIGESTS)
        return self.job.exists() and not any(part.exists() for part in parts)

    def prepare(self, *, arms: bool = False) -> None:
        """Create the folder. Raises RunError if the path is not a folder or belongs to another program.
        `arms`: the folder is for the arms of a job, without a ledger of its own."""
        require_locks()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            what = "link leads nowhere" if self.path.is_symlink() else "is a file"
            raise RunError(f"{self.path}: this {what}; choose another run folder with -o.") from None
        except OSError as problem:
            raise RunError(f"{self.path}: the run folder cannot be made ({problem.strerror}).") from None
        self.refuse_links()
        strangers = sorted(p.name for p in self.path.iterdir() if not self._is_own(p))
        wrong = ""
        if strangers and not self.exists:
            wrong = f"other things ({', '.join(strangers[:3])}) and no run"
        elif arms and self.ledger.exists():
            wrong = "a run without arms"
        elif not arms and self.arms_folder.exists():
            wrong = "a run with arms"
        if wrong:
            raise RunError(
                f"{self.path}: this folder holds {wrong}. Nothing was changed; choose another run folder "
                "with -o."
            )
        if self._is_project():
            raise RunError(
                f"{self.path}: this folder holds a job ({self.job.name}) and no run. A run has a folder of its "
                "own. Nothing was changed; choose another run folder with -o."
            )
        if not arms and self.job.exists() and (not self.ledger.exists() or self.ledger.stat().st_size == 0):
            raise RunError(
                f"{self.ledger}: the ledger of this run is missing or empty, so what was paid for is "
                "unknown. Restore it, or choose another run folder with -o."
            )

    def _is_own(self, path: Path) -> bool:
        """Return whether a start that was killed before it stored its job may have left this."""
        begun = self.lock.exists() and path in (self.inputs, self.arms_folder, self.path / DIGESTS)
        left = find_target(path.name) in _OWN or (path.name.startswith(".") and path.name.endswith(".tmp"))
        return path == self.lock or begun or left

    @contextlib.contextmanager
    def lock_for_writing(self) -> Iterator[str | None]:
        """Hold the run for this process. Yield the name of a killed former holder; None if there is none.
        Raises LockedError if a live process holds it."""
        with locks.lock_for_writing(self.lock, self._taken, "another run folder") as dead:
            self._sweep()  # first, since a kill may have left a second name of a ledger
            self._refuse_other_names()
            settle_digests(self.path)
            yield dead

    def _sweep(self) -> None:
        """Remove temporary files of killed processes, also in arms on which no other process works."""
        remove_temporary_files(self.path, _SWEPT)
        remove_temporary_files(self.arms_folder, (self.arm_numbers.name,))
        for arm in map(RunFolder, sorted(self.arms_folder.glob("*"))):
            if not arm.path.is_symlink() and not arm.is_locked():
                remove_temporary_files(arm.path, _SWEPT)

    def lock_for_reading(self) -> contextlib.AbstractContextManager[None]:
        """Keep others from changing the run while it is read. Raises LockedError if a process writes."""
        return locks.lock_for_reading(self.lock, self._taken)

    def is_locked(self) -> bool:
        """Return whether a live process holds the run."""
        return locks.is_locked(self.lock)

    @property
    def _taken(self) -> str:
        return f"{self.path}: another process works on this run"

    def _refuse_other_names(self) -> None:
        """Raise RunError if a ledger, or a file that SQLite keeps next to it, has a second hard link. Writes
        would change the other file as well."""
        for path in (Path(f"{ledger}{end}") for ledger in self.ledgers() for end in ("", "-wal", "-shm")):
            if path.exists() and path.stat().st_nlink > 1:
                raise RunError(
                    f"{path}: it is a hard link, so changes here would also change the file's other name. "
                    f"Copy the run's folder (cp -r {self.path} COPY), and work on the copy."
                )

    def set_aside(self) -> Path | None:
        """Move the finished files of an earlier form of the job to `previous/<n>/`. The ledger stays.

        The files are gathered in a temporary folder first. After a kill, files there belong to the same form
        unless they also exist here.
        """
        made = (self.job, self.inputs, self.shards, self.rejected, self.pairs, self.comparisons, self.report)
        finished = [path for path in made if path.exists()]
        if finished == [self.inputs] and not (self._gathering / self.job.name).exists():
            # a job is stored after its inputs: nothing more was stored for this one
            return self.end_setting_aside()
        if any((self._gathering / path.name).exists() for path in finished):
            self.end_setting_aside()
        if finished:
            forget_digests(self.path, [path.relative_to(self.path).as_posix() for path in finished])
            self._gathering.mkdir(parents=True, exist_ok=True)
        for path in finished:
            path.rename(self._gathering / path.name)
        return self.end_setting_aside()

    def end_setting_aside(self) -> Path | None:
        """Move gathered files, also those from before a kill, to `previous/`. Return their folder, if any."""
        if not self._gathering.is_dir():
            return None
        if not any(self._gathering.iterdir()):
            self._gathering.rmdir()
            return None
        number = 1 + max((int(p.name) for p in self.previous.glob("*") if p.name.isdigit()), default=0)
        return self._gathering.rename(self.previous / str(number))

    @property
    def _gathering(self) -> Path:
        return self.previous / ".gathering"

    def write_job(self, job: dict[str, Any], inputs: dict[str, str]) -> None:
        """Write the resolved job and the texts of its template and space, each atomically."""
        self.inputs.mkdir(exist_ok=True)
        plain = yaml.safe_dump(job, sort_keys=False, allow_unicode=True, width=100)
        self.write_texts({**{self.inputs / name: text for name, text in inputs.items()}, self.job: plain})


def _list_ledgers(folder: Path) -> list[Path]:
    """Return the ledgers in a folder, without empty ones, which a kill may leave."""
    return [
        path
        for path in sorted(folder.glob("*.db"), key=lambda path: path.stem)
        if path.stat().st_size or path.with_name(f"{path.name}-wal").exists()
    ]

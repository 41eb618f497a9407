"""The folder of a run: what is in it, by name, and the job as it was resolved.

    job.yaml  inputs/<template> <space>  run.db  run.lock  shards/  rejected.jsonl  previous/<n>/
    comparisons/<a>-vs-<b>.json  report.html
    pairs/pairs.jsonl  pairs/votes.jsonl  pairs/judged/<judge>.db .json  pairs/rollouts/<agents>.db .json
    adherence/<judge>.db .json
    layers/<layer>/layer.json labels.jsonl annotators/<annotator>.db .json
    candidates/<kind>.jsonl <kind>/<writer>.db .json
    arms/numbers.json  arms/<name>/ (each a run)

`job.yaml` names its inputs inside the folder, so it can be generated from again elsewhere. A run's folder may come
from a stranger: where anything of edgen's in it is a link, a pipe or a device, the run is refused.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from edgen.core.errors import RunError, SpaceError, UsageError
from edgen.core.files import refuse_links, sweep, target_name, update_text
from edgen.store import locks

_IN_PLACE = ("run.lock", "run.db", "run.db-wal", "run.db-shm", "run.db-journal")  # written where they stand
_MADE = ("job.yaml", "inputs", "run.batches", "shards", "rejected.jsonl", "previous", "merged")
_MADE_OF_IT = ("pairs", "adherence", "layers", "candidates", "comparisons", "report.html")
_SWEPT = (*_IN_PLACE, *_MADE, *_MADE_OF_IT)
_OWN = frozenset((*_SWEPT, "arms"))
_HEAD = 2_000  # bytes of a file in which its mark stands


class RunFolder:
    """Where things are in a run's folder. Makes nothing by itself."""

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
        self.judged = path / "pairs" / "judged"
        self.rollouts = path / "pairs" / "rollouts"
        self.pairs = path / "pairs" / "pairs.jsonl"
        self.votes = path / "pairs" / "votes.jsonl"
        self.adherence = path / "adherence"
        self.layers = path / "layers"
        self.candidates = path / "candidates"
        self.comparisons = path / "comparisons"
        self.report = path / "report.html"

    def arm(self, name: str) -> RunFolder:
        """The folder of one arm. The only arm of a job without `arms:` is "", and its folder is this one."""
        return RunFolder(self.arms_folder / name) if name else self

    def arms(self) -> list[tuple[str, RunFolder]]:
        """Name and folder of each arm, begun or not, of the job that is noted here: at least one."""
        from edgen.config import load_job

        names = ("",) if self.ledger.exists() else load_job(self.job).arm_names
        return [(name, self.arm(name)) for name in names]

    def begun_arms(self) -> list[tuple[str, RunFolder]]:
        """The arms that have a ledger, or may have one. Raises RunError if there is none."""
        begun = [(name, own) for name, own in self.arms() if not name or own.ledger.exists()]
        if not begun:
            raise RunError(f"{self.path}: none of this run's arms was begun; generate it first.")
        return begun

    def ledgers(self) -> list[Path]:
        """Every ledger in this run: its own or its arms', those of its judges, of pairs and of adherence, those of
        its rollouts, those of the annotators of its layers, and those of writers."""
        own = [path for path in (self.ledger, *sorted(self.arms_folder.glob("*/run.db"))) if path.exists()]
        return (
            own
            + self.judge_ledgers()
            + self.rollout_ledgers()
            + _begun(self.adherence)
            + self.annotator_ledgers()
            + self.writer_ledgers()
        )

    def judge_ledgers(self) -> list[Path]:
        """The ledger of each judge of pairs."""
        return _begun(self.judged)

    def rollout_ledgers(self) -> list[Path]:
        """The ledger of each run, or arm, from whose turns conversations were played on."""
        return _begun(self.rollouts)

    def annotator_ledgers(self) -> list[Path]:
        """The ledger of each annotator of each layer."""
        folders = sorted(self.layers.glob("*/annotators"))
        return [path for folder in folders for path in _begun(folder)]

    def writer_ledgers(self) -> list[Path]:
        """The ledger of each writer of texts beside turns, by their kind."""
        return [path for folder in self.writers() for path in _begun(folder)]

    def written(self, kind: str) -> Path:
        """Where the texts of a kind are that models wrote beside its turns ("paraphrases", "wrong")."""
        return self.candidates / f"{kind}.jsonl"

    def writers(self) -> list[Path]:
        """The folders of writers' ledgers, one a kind of texts."""
        return sorted(path for path in self.candidates.glob("*") if path.is_dir())

    def note_judge(self, judge: str, facts: dict[str, Any], folder: Path) -> None:
        """Keep beside a ledger in `folder`, a judge's or of rollouts, who answers and how it is asked."""
        folder.mkdir(parents=True, exist_ok=True)
        update_text(folder / f"{judge}.json", json.dumps(facts, indent=2, ensure_ascii=False) + "\n")

    def numbered_arms(self, arms: Iterable[str] = ()) -> list[str]:
        """Every arm this run ever had, in the order in which they first came; `arms` are added behind
        them. Their places number the candidates, so they never change."""
        try:
            known = msgspec.json.decode(self.arm_numbers.read_bytes(), type=list[str])
        except FileNotFoundError:
            known = []
        except (OSError, ValueError) as problem:
            raise RunError(f"{self.arm_numbers}: it cannot be read as a list of names ({problem}).") from None
        new = [arm for arm in arms if arm not in known]
        if new:
            self.arms_folder.mkdir(exist_ok=True)
            update_text(self.arm_numbers, json.dumps([*known, *new]))
        return [*known, *new]

    @property
    def begun(self) -> bool:
        """Whether anything was asked here."""
        return bool(self.ledgers())

    @property
    def exists(self) -> bool:
        """Whether a run was ever started here, also where a link that leads nowhere stands in the place of its files."""
        return any(path.exists() or path.is_symlink() for path in (self.ledger, self.job))

    def refuse_links(self) -> None:
        """Raise RunError if anything of edgen's in the folder is a link, a pipe or a device."""
        refuse_links(self.path, _OWN)

    def require(self) -> None:
        """Raise RunError if no run was ever started here, and as `refuse_links`."""
        self.refuse_links()
        if self.job.exists():
            return
        if self.path.suffix in (".yaml", ".yml") and self.path.is_file():
            raise RunError(
                f"{self.path}: this is a job and no run. Its run is the folder outputs/<name>, with the name that "
                f"stands in the job; `edgen generate {self.path}` makes it."
            )
        raise RunError(f"{self.path}: there is no run here; `edgen generate JOB -o {self.path}` makes one.")

    def prepare(self, *, arms: bool = False) -> None:
        """Make the folder. Raises RunError if it is something else or another program's. `arms`: it is
        to hold the runs of a job's arms, and no ledger of its own."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            what = "link leads nowhere" if self.path.is_symlink() else "is a file"
            raise RunError(f"{self.path}: this {what}; choose another run folder with -o.") from None
        except OSError as problem:
            raise RunError(f"{self.path}: the run folder cannot be made ({problem.strerror}).") from None
        self.refuse_links()
        strangers = sorted(p.name for p in self.path.iterdir() if not self._own(p))
        wrong = ""
        if strangers and not self.exists:
            wrong = f"other things ({', '.join(strangers[:3])}) and no run"
        elif arms and self.ledger.exists():
            wrong = "a run without arms"
        elif not arms and self.arms_folder.exists():
            wrong = "a run with arms"
        if wrong:
            raise RunError(
                f"{self.path}: this folder holds {wrong}. Nothing was changed; choose another run folder with -o."
            )
        if not arms and self.job.exists() and (not self.ledger.exists() or self.ledger.stat().st_size == 0):
            raise RunError(
                f"{self.ledger}: the ledger of this run is missing or empty, so what was paid for is unknown. "
                "Restore it, or choose another run folder with -o."
            )

    def _own(self, path: Path) -> bool:
        """Whether a start that was killed before it could note its job may have left this."""
        begun = self.lock.exists() and path in (self.inputs, self.arms_folder)
        left = target_name(path.name) in _OWN or (path.name.startswith(".") and path.name.endswith(".tmp"))
        return path == self.lock or begun or left

    @contextlib.contextmanager
    def lock_for_writing(self) -> Iterator[str | None]:
        """Hold the run for this process; gives the name of the one that held it before and was killed, None if there
        is none. Raises LockedError if a live process holds it."""
        with locks.lock_for_writing(self.lock, self._taken, "another run folder") as dead:
            sweep(self.path, _SWEPT)  # first: what a kill left may be a second name of a ledger
            self._refuse_other_names()
            yield dead

    def lock_for_reading(self) -> contextlib.AbstractContextManager[None]:
        """Keep others from changing the run while it is read. Raises LockedError if one is at it."""
        return locks.lock_for_reading(self.lock, self._taken)

    def is_locked(self) -> bool:
        """Whether a live process holds the run."""
        return locks.is_locked(self.lock)

    @property
    def _taken(self) -> str:
        return f"{self.path}: another process works on this run"

    def _refuse_other_names(self) -> None:
        """Raise RunError if a ledger, or what SQLite keeps beside it, has another name somewhere: it would be written
        there as well."""
        for path in (Path(f"{ledger}{end}") for ledger in self.ledgers() for end in ("", "-wal", "-shm")):
            if path.exists() and path.stat().st_nlink > 1:
                raise RunError(
                    f"{path}: it is a hard link: the file has another name, and would be changed there, too. "
                    f"Copy the run's folder (cp -r {self.path} COPY), and work on the copy."
                )

    def set_aside(self) -> Path | None:
        """Move what an earlier form of the job finished to `previous/<n>/`; the ledger stays.

        It is gathered in a folder of another name first, which a kill may leave: what is there then is of the same
        form if it is not here as well."""
        made = (self.job, self.inputs, self.shards, self.rejected, self.pairs, self.comparisons, self.report)
        finished = [path for path in made if path.exists()]
        if finished == [self.inputs] and not (self._gathering / self.job.name).exists():
            return self.end_setting_aside()  # a job is noted after its inputs: of this one no more was noted
        if any((self._gathering / path.name).exists() for path in finished):
            self.end_setting_aside()
        if finished:
            self._gathering.mkdir(parents=True, exist_ok=True)
        for path in finished:
            path.rename(self._gathering / path.name)
        return self.end_setting_aside()

    def end_setting_aside(self) -> Path | None:
        """Give what was gathered, also before a kill, its place in `previous/`. None if there is nothing."""
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
        for name, text in inputs.items():
            update_text(self.inputs / name, text)
        update_text(self.job, yaml.safe_dump(job, sort_keys=False, allow_unicode=True, width=100))


def run_around(place: Path) -> Path | None:
    """The folder of the run that this place is in, or is."""
    real = Path(os.path.realpath(place))
    folders = (RunFolder(folder) for folder in (real, *real.parents))
    return next((run.path for run in folders if run.job.is_file() and run.begun), None)


def inputs_named(job: Mapping[str, Any]) -> set[str]:
    """The files that a run's job names as its templates and spaces, and those of its arms. What stands beside a
    template or a space is `inputs_beside`."""
    found: set[Any] = set()
    for values in (job, *(job.get("arms") or {}).values()):
        found |= {values.get("space"), values.get("prompt"), *(values.get("prompts") or {}).values()}
    return {name for name in found if isinstance(name, str)}


def inputs_beside(run: RunFolder, inputs: Iterable[str]) -> set[str]:
    """What stands beside those of a run's inputs: the schemas of templates, and the knowledge files of spaces."""
    from edgen.prompting.answer_schema import schema_file
    from edgen.space import load_space

    beside = {str(schema_file(Path(name))) for name in inputs if name.endswith(".j2")}
    for space in (Path(name) for name in inputs if name.endswith(".yaml")):
        with contextlib.suppress(SpaceError):  # who needs the space says so
            knowledge = load_space(run.path / space).knowledge
            beside |= {str(space.parent / knowledge.file)} if knowledge else set()
    return {name for name in beside if (run.path / name).is_file()}


def check_file(path: Path, run: RunFolder, mark: bytes, what: str) -> None:
    """Raise UsageError unless a command may write `what` about `run` to the file `path`: nothing is there, or an
    earlier one, which has `mark` near its beginning. A run's folder is the run's: it has one place for each."""
    if not path.name or path.is_dir():
        raise UsageError(f"{path}: this is a folder; name a file in it with -o.")
    if path.is_symlink() and not path.exists():
        raise UsageError(f"{path}: this link leads nowhere; name another file with -o.")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        wrong = "cannot be written" if path.parent.is_dir() else "is no folder"
        raise UsageError(f"{path}: {path.parent} {wrong}; name a file elsewhere with -o.")
    real, own = Path(os.path.realpath(path)), RunFolder(Path(os.path.realpath(run.path)))
    if (around := run_around(path)) is not None and own.comparisons != real.parent and own.report != real:
        raise UsageError(f"{path}: this is in the folder of the run {around}; name a file elsewhere with -o.")
    if not path.exists():
        return
    try:
        # A pipe or a device is never read: that could take for ever.
        with path.open("rb") if path.is_file() else contextlib.nullcontext() as file:
            known = file is not None and mark in file.read(_HEAD)
    except OSError as problem:
        raise UsageError(
            f"{path}: it cannot be written ({problem.strerror}); name another file with -o."
        ) from None
    if not known:
        raise UsageError(
            f"{path}: this is no {what} of edgen, and is left as it is; name another file with -o."
        )


def _begun(folder: Path) -> list[Path]:
    """The ledgers in a folder. One that a kill left empty holds nothing, and is none."""
    return [
        path
        for path in sorted(folder.glob("*.db"), key=lambda path: path.stem)
        if path.stat().st_size or path.with_name(f"{path.name}-wal").exists()
    ]

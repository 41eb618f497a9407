"""Job files, read and checked, with overrides (`--set key.path=value`) applied.

The files that a job names are named from anywhere afterwards. Those that a run was made with, its job among
them, are the run's inputs, which nobody may change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from edgen.config.arms import arm_jobs
from edgen.config.conversion import check_values, convert_values
from edgen.config.job import Job
from edgen.core.errors import DamagedError, FileError, JobError, Problem, UsageError
from edgen.core.kept_files import find_damage, has_digest
from edgen.core.resources import list_shipped
from edgen.core.yaml_values import read_text, read_yaml, suggest_file

_INPUTS = ("job.yaml", "arms/numbers.json")  # of a run, besides the files in inputs/


class _SetError(FileError):
    what = "option"


def load_job(path: Path, overrides: Iterable[str] = ()) -> Job:
    """Return the job in the file at `path`, with `key.path=value` overrides applied. Raises JobError with
    every problem found, UsageError for an invalid override. Raises DamagedError if the job is a run's own
    copy and the run's inputs are not as edgen wrote them."""
    return _locate_files(parse_job(_read_file(path), str(path), overrides), path)


def load_kept_job(path: Path) -> Job:
    """Return the job that a run keeps at `path`. It passed all checks when the run began, and they are not
    repeated as long as its digest vouches for it. Raises as `load_job` does."""
    value = _read_file(path)
    if not has_digest(path):
        return load_job(path)
    return _locate_files(convert_values(value, str(path)), path)


def _read_file(path: Path) -> Any:
    """Return the plain values of a job's file."""
    source = str(path)
    if not path.exists():
        raise JobError(source, f"there is no such file.{_suggest_instead(path)}")
    if (inside := path / "job.yaml").is_file():
        raise JobError(source, f"this is a folder, not a file. Did you mean {inside}?")
    if path.is_file():
        require_inputs(path.parent)
    return read_yaml(read_text(path, JobError), source, JobError)


def _locate_files(job: Job, path: Path) -> Job:
    """Return the job of the file at `path` with the files of its backends, of its arms' backends and of its
    budget named from anywhere."""
    folder = path.parent
    job = msgspec.structs.replace(
        job, backends={name: backend.located(folder) for name, backend in job.backends.items()}
    )
    for arm, held in arm_jobs(job, str(path)).items() if job.arms else ():
        for name, changes in (job.arms[arm].get("backends") or {}).items():
            backend = held.backends[name]
            for key in changes.keys() & {*backend.__struct_fields__}:
                if (there := getattr(backend.located(folder), key)) != getattr(backend, key):
                    changes[key] = there
    if job.limits.budget is None:
        return job
    # Relative to the job's folder, like the other files that it names; a run's copy of the job is elsewhere.
    budget = str((folder / Path(job.limits.budget).expanduser()).absolute())
    return msgspec.structs.replace(job, limits=msgspec.structs.replace(job.limits, budget=budget))


def _suggest_instead(path: Path) -> str:
    """Suggest what to do about a missing job file."""
    if (shipped_job := path.name.removesuffix(".yaml")) in list_shipped("jobs"):
        return (
            f" `edgen init my-project --job {shipped_job}` makes a folder with a copy of the shipped job of this name; "
            "then: edgen generate my-project/job.yaml"
        )
    return suggest_file(path)


def parse_job(value: Any, source: str, overrides: Iterable[str] = ()) -> Job:
    """Build a job from plain values. Error messages call it `source`."""
    if not isinstance(value, dict):
        raise JobError(source, "this file is not a mapping; a job is a mapping of keys to values.")
    for override in overrides:
        apply_override(value, override)
    if "name" in value:
        value = {**value, "name": _fill_in_date(value["name"], source)}
    job = check_values(value, source)
    arm_jobs(job, source)
    return job


def _fill_in_date(name: Any, source: str) -> Any:
    """Return a job's name with `{date}` replaced by today's local date; values that are not text
    unchanged."""
    wrong = None
    if isinstance(name, dict) and list(name) == ["date"]:  # YAML's own reading of the braces
        wrong = "YAML takes braces at the beginning for a mapping; put quotes around: name: '{date}'"
    elif not isinstance(name, str):
        return name
    elif unknown := [field for field in re.findall(r"\{[^{}]*\}?", name) if field != "{date}"]:
        wrong = f"{unknown[0]} is unknown; a name may contain {{date}}, today's date as in 2027-01-31"
    if wrong is not None:
        raise JobError.of(source, [Problem("$.name", wrong)])
    return name.replace("{date}", datetime.now().astimezone().date().isoformat())


def apply_override(value: dict[str, Any], assignment: str) -> None:
    """Apply one `a.b=c` to the plain values, the right side read as YAML."""
    key, equals, text = assignment.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(re.fullmatch(r"[A-Za-z0-9_-]+", part) for part in parts):
        raise UsageError(f"--set {assignment}: expected key=value, as in --set limits.in_flight=8.")
    node = value
    for part in parts[:-1]:
        child = node.setdefault(part, {})
        if not isinstance(child, dict):
            raise UsageError(f"--set {assignment}: '{part}' is not a mapping in this job.")
        node = child
    node[parts[-1]] = read_yaml(text, f"--set {assignment}", _SetError)


def texts_of(overrides: Iterable[str]) -> frozenset[str]:
    """Return every text in the values of `key.path=value` overrides, which a person typed."""
    found, left = set(), [read_yaml(one.partition("=")[2], f"--set {one}", _SetError) for one in overrides]
    while left:
        value = left.pop()
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):
            left += value
    return frozenset(found)


def is_input(name: str) -> bool:
    """Return whether the file of this path in a run's folder is one of the run's inputs."""
    folder, _, file = name.rpartition("/")
    return name in _INPUTS or (folder == "inputs" and file not in ("", ".", ".."))


def require_inputs(run: Path) -> None:
    """Raise DamagedError if one of a run's inputs is not as edgen wrote it. A run of an older edgen has no
    digests of them, and a folder that is not a run has none either."""
    found = [*find_damage(run, is_input)]
    if not found:
        return
    others = "".join(f" So is {run / one.name}: {one.what}." for one in found[1:4])
    raise DamagedError(
        f"{run / found[0].name}: this is not what the run was made with: {found[0].what}.{others} Nothing was asked or changed. "
        f"`edgen validate {run} --restore` puts back what the run was made with. To change a template, a space or the job, edit "
        "the project's own file and run `edgen generate` with its job: a run's inputs are copies."
    )

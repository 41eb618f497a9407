"""Text files that a job's backends name, such as a text that people agree to.

They are read with the job, and the run keeps copies among its inputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgen.config import Job
from edgen.core.errors import FileError
from edgen.core.yaml_values import read_text
from edgen.planning.allowed_files import AllowedFiles

_MOST = 200_000  # bytes of a text for people


class BackendFileError(FileError):
    what = "file of a backend"


def read_backend_files(job: Job, allowed: AllowedFiles) -> dict[str, str]:
    """Return the texts of the files that the backends name, by path. Raises FileError if one cannot be read
    or used, or the job may not name it."""
    found: dict[str, str] = {}
    for name, backend in job.backends.items():
        for key, kind in backend.FILES.items():
            if (path := getattr(backend, key)) is not None:
                source = allowed.find_file(kind, path, f"backends.{name}.{key}")
                found[path] = read_text(source, BackendFileError, max_bytes=_MOST)
                if kind == "questionnaires":
                    from edgen.protocols.questionnaire import load_questionnaire

                    load_questionnaire(source)
                elif not found[path].strip():
                    raise BackendFileError(path, "it is empty; write the text that people read.")
    return found


def keep_backend_files(values: Mapping[str, Any], held: Mapping[str, str], texts: dict[str, str]) -> None:
    """Add the files of backends to a run's inputs (`texts`), and change the job's plain `values` to name
    these. `held`: the files' texts by path."""
    for backend in (values.get("backends") or {}).values():
        for key, path in backend.items():
            if isinstance(path, str) and path in held:
                backend[key] = f"inputs/{_keep(texts, Path(path), held[path])}"


def _keep(texts: dict[str, str], path: Path, text: str) -> str:
    """Add a text; return its file's name. Different texts with the same name get different names."""
    names = (
        f"{path.stem}{'' if number == 1 else f'-{number}'}{path.suffix}" for number in itertools.count(1)
    )
    free = next(name for name in names if texts.get(name, text) == text)
    texts[free] = text
    return free

"""Which files a job may have read: those of its own project, and what the person at the command line lets it.

A job may come from a stranger, and what it names is sent to a model that it names too. So a file that a job names lies
under the job's project once links are followed, is a regular file of a sensible size, and ends in the suffix of its
kind. The project is the nearest folder above the job with one of MARKERS, else the job's own folder. A shipped file's
name is always fine. `--allow-outside` lifts place and suffix, and so does typing the path oneself; nothing lets a pipe
or a device be opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgen.config import texts_of
from edgen.config.label_set import LabelSetError
from edgen.core import resources
from edgen.core.errors import FileError, MachineError, SpaceError, TemplateError
from edgen.core.yaml_values import nearest
from edgen.prompting.answer_schema import SUFFIX, schema_file

Shipped = Literal["prompts", "preference_space", "label_sets", "machines", "questionnaires"]
Kind = Shipped | Literal["tokenizer"]
MARKERS = (".git", "pyproject.toml", "edgen.yaml")
MAX_TOKENIZER = 256 * 1024 * 1024  # bytes; the largest in use has 33 million


class _TokenizerError(FileError):
    what = "tokenizer"


class _QuestionnaireError(FileError):
    what = "questionnaire"


_YAML = (".yaml", ".yml")
# The suffixes of a kind, the error for a file of it, and what one is called in an example.
_KINDS: dict[Kind, tuple[tuple[str, ...], type[FileError], str]] = {
    "prompts": ((".j2",), TemplateError, "prompt"),
    "preference_space": (_YAML, SpaceError, "space"),
    "label_sets": (_YAML, LabelSetError, "labels"),
    "tokenizer": ((".json",), _TokenizerError, "tokenizer"),
    "machines": (("",), MachineError, "machine"),  # a folder
    "questionnaires": (_YAML, _QuestionnaireError, "questionnaire"),
}


@dataclass(frozen=True, slots=True)
class Reach:
    """What a job may name. `base`: where its relative names start. `root`: the folder that they have to lie under,
    None for anywhere. `typed`: what the person typed, which may be anywhere, too."""

    base: Path
    root: Path | None
    typed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, job: Path, overrides: Iterable[str] = (), *, outside: bool = False) -> Reach:
        """What the job in the file `job` may name. `overrides`: what was typed on top of it; `outside`: everything."""
        return cls(job.parent, None if outside else find_project(job.parent), texts_of(overrides))

    def file(self, kind: Kind, name: str, key: str) -> Path:
        """The file that a job means by `name`, under its key `key`; it need not exist.

        Raises the error of its kind (TemplateError, SpaceError, MachineError …) for one that the job may not have read.
        """
        path, error = self._find(kind, name), _KINDS[kind][1]
        try:
            real = Path(os.path.realpath(path))
            if wrong := self._why_not(kind, name, key, path, real):
                raise error(
                    name,
                    f"{wrong}; a job may name its project's own files alone. To have it read all the same, "
                    f"add --allow-outside, or type its path yourself: --set {key}={name}",
                )
            found = real.stat()
        except (FileNotFoundError, NotADirectoryError):
            return path  # who reads it says so
        except (OSError, ValueError) as problem:
            raise error(
                name, f"it cannot be read: {getattr(problem, 'strerror', None) or problem}."
            ) from None
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            raise error(name, "it is a pipe or a device, and only files are read.")
        if kind == "tokenizer" and found.st_size > MAX_TOKENIZER:
            raise error(name, f"it is larger than {MAX_TOKENIZER >> 20} MiB, the most that is read.")
        return path

    def check_beside(self, template: Path, key: str) -> None:
        """Raise TemplateError where a schema stands beside a template, and the job may not have it read: it lies,
        once links are followed, in the template's own folder or under the project."""
        path = schema_file(template)
        if not os.path.lexists(path):
            return
        real, folder = (Path(os.path.realpath(one)) for one in (path, template.parent))
        if not real.is_file() and not real.is_dir() and real.exists():
            raise TemplateError(str(path), "it is a pipe or a device, and only files are read.")
        near = self.root is None or real.is_relative_to(self.root) or real.parent == folder
        if not near or not real.name.endswith(SUFFIX):
            raise TemplateError(
                str(path),
                f"this leads to {real}; the schema beside the template that `{key}` names lies in the job's project and "
                f"ends in {SUFFIX}.",
            )

    def _why_not(self, kind: Kind, name: str, key: str, path: Path, real: Path) -> str:
        """Why the job may not name this file, `real` once links are followed; empty if it may."""
        if self.root is None or name in self.typed:
            return ""
        if kind != "tokenizer" and resources.find(kind, name, Path()).parent == resources.folder(kind):
            return ""
        if not real.is_relative_to(self.root):
            return f"this leads to {real}, outside of the job's project {self.root}"
        if kind == "machines":
            return self._why_no_machine(real)
        suffixes = _KINDS[kind][0]
        ends = f"what `{key}` names has to end in {' or '.join(suffixes)}"
        if not path.name.endswith(suffixes):
            return ends
        # A link in a cloned repository could lead to the .env that its user is told to write. What a tokenizer
        # holds is sent nowhere, and the hub's own tool keeps those as links to names without a suffix.
        if kind != "tokenizer" and not real.name.endswith(suffixes):
            return f"this leads to {real}, and {ends} there, too"
        return ""

    def _why_no_machine(self, folder: Path) -> str:
        """Why a folder of files may not be named: one of them leads out of the project, or is no file of a machine's."""
        assert self.root is not None
        for path in folder.glob("*.y*ml"):
            real = Path(os.path.realpath(path))
            if not real.is_relative_to(self.root) or not real.name.endswith((".yaml", ".yml")):
                return f"{path.name} in it leads to {real}, which is no file of the job's project {self.root}"
        return ""

    def require(self, kind: Shipped, name: str, key: str) -> Path:
        """The same, of a shipped file's name or a path. Raises the error also for a name that nothing has; whoever
        reads the file raises it for a path."""
        path, (suffixes, error, called) = self.file(kind, name, key), _KINDS[kind]
        if not path.exists() and "/" not in name:
            raise error(
                name,
                f"no such {error.what}{nearest(name, resources.shipped(kind))}; "
                f"a file of your own is named by its path, as in ./my_{called}{suffixes[0]}.",
            )
        return path

    def _find(self, kind: Kind, name: str) -> Path:
        if kind != "tokenizer":
            return resources.find(kind, name, self.base)
        try:
            return self.base / Path(name).expanduser()
        except RuntimeError:  # ~nobody
            return self.base / name


def unlimited() -> Reach:
    """What a person types where they are."""
    return Reach(Path(), None)


def find_project(folder: Path) -> Path:
    """The project of a job in `folder`: the nearest folder above it that is marked as one, else its own."""
    own = Path(os.path.realpath(folder))
    return next((one for one in (own, *own.parents) if any(_there(one / mark) for mark in MARKERS)), own)


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder that may not be looked into
        return False

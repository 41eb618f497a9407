"""Files that a job may name: its own project's files, and files that the user allows on the command line.

A job may come from somebody else, and sends contents of files to a model that it names itself. So a file that
a job names must be under the job's project after following links, be a regular file of limited size, and have
the suffix of its kind. The project is the nearest folder above the job with one of MARKERS, else the job's
own folder. Names of shipped files are always allowed. `--allow-outside`, or typing the path on the command
line, lifts the rules on place and suffix; pipes and devices are never opened.

A bare name always means the shipped file. `describe_doubt` warns if the user's own file of this name may be
meant.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from edgen.config import list_texts
from edgen.config.label_set import LabelSetError
from edgen.core import resources
from edgen.core.errors import FileError, SpaceError, TemplateError
from edgen.core.space_layouts import make_space_mark
from edgen.core.yaml_values import suggest_file, suggest_name
from edgen.prompting.prompt import SUFFIX, find_schema_file

Kind = str  # a key of _KINDS, or the name of a kind of folders
MARKERS = (".git", "pyproject.toml", "edgen.yaml")
MAX_TOKENIZER = 256 * 1024 * 1024  # bytes; the largest known has 33 million


class _TokenizerError(FileError):
    what = "tokenizer"


class _TextError(FileError):
    what = "text"


class _QuestionnaireError(FileError):
    what = "questionnaire"


_YAML = (".yaml", ".yml")
# A kind's suffixes, the error for its files, and an example's name.
_About = tuple[tuple[str, ...], type[FileError], str]
_KINDS: dict[Kind, _About] = {
    "prompts": ((".j2",), TemplateError, "prompt"),
    "preference_space": (_YAML, SpaceError, "space"),
    "label_sets": (_YAML, LabelSetError, "labels"),
    "tokenizer": ((".json",), _TokenizerError, "tokenizer"),
    "text": ((".md", ".txt"), _TextError, "text"),
    "questionnaires": (_YAML, _QuestionnaireError, "questionnaire"),
}


def _describe_kind(kind: Kind) -> _About:
    """Return the suffixes, the error and the example's name of a kind; folders have the empty suffix."""
    if kind in _KINDS:
        return _KINDS[kind]
    folder = resources.find_folder_kind(kind)
    return ("",), folder.error, folder.called


@dataclass(frozen=True, slots=True)
class AllowedFiles:
    """The files that a job may name."""

    base: Path
    """The folder of its relative names."""
    root: Path | None
    """The folder that files must be under; None for anywhere."""
    typed: frozenset[str] = frozenset()
    """Paths that the user typed; these may be anywhere."""
    doubts: dict[str, None] = field(default_factory=dict, compare=False)
    """Sentences about ambiguous names so far, once each."""

    @classmethod
    def of(cls, job: Path, overrides: Iterable[str] = (), *, outside: bool = False) -> AllowedFiles:
        """Return the files that a job may name. `overrides`: settings typed on the command line. `outside`:
        files may be anywhere."""
        return cls(job.parent, None if outside else find_project(job.parent), list_texts(overrides))

    def find_file(self, kind: Kind, name: str, key: str) -> Path:
        """Return the file that a job calls `name` under its key `key`; it need not exist.

        Raises the error of its kind (TemplateError, SpaceError …) if the job may not read it.
        """
        path, error = self._find(kind, name), _describe_kind(kind)[1]
        try:
            real = Path(os.path.realpath(path))
            if wrong := self._explain_refusal(kind, name, key, path, real):
                raise error(
                    name,
                    f"{wrong}; a job may only name files of its own project. To read it nevertheless, "
                    f"add --allow-outside, or type its path yourself: --set {key}={name}",
                )
            found = real.stat()
        except (FileNotFoundError, NotADirectoryError):
            return path  # its reader reports the error
        except (OSError, ValueError) as problem:
            raise error(
                name, f"it cannot be read: {getattr(problem, 'strerror', None) or problem}."
            ) from None
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            raise error(name, "it is a pipe or a device; name a regular file.")
        if kind == "tokenizer" and found.st_size > MAX_TOKENIZER:
            raise error(name, f"it is larger than {MAX_TOKENIZER >> 20} MiB, the most that is read.")
        return path

    def check_schema_file(self, template: Path, key: str) -> None:
        """Raise TemplateError if there is a schema next to a template that the job may not read. After
        following links, it must be in the template's folder or under the project."""
        path = find_schema_file(template)
        if not os.path.lexists(path):
            return
        real, folder = (Path(os.path.realpath(one)) for one in (path, template.parent))
        if not real.is_file() and not real.is_dir() and real.exists():
            raise TemplateError(str(path), "it is a pipe or a device; name a regular file.")
        near = self.root is None or real.is_relative_to(self.root) or real.parent == folder
        if not near or not real.name.endswith(SUFFIX):
            raise TemplateError(
                str(path),
                f"this leads to {real}; the schema next to the template that `{key}` names lies in the job's "
                f"project and ends in {SUFFIX}.",
            )

    def _explain_refusal(self, kind: Kind, name: str, key: str, path: Path, real: Path) -> str:
        """Explain why the job may not name this file; empty if it may. `real`: the path after following
        links."""
        if self.root is None or name in self.typed or name in self._resolve_typed_paths():
            return ""
        if kind in ("text", "questionnaires") and real.is_relative_to(
            os.path.realpath(resources.find_folder("questionnaires"))
        ):
            return ""
        if (
            kind != "tokenizer"
            and kind != "text"
            and resources.is_shipped(kind, resources.find(kind, name, Path()))
        ):
            return ""
        if not real.is_relative_to(self.root):
            return f"this leads to {real}, outside of the job's project {self.root}"
        suffixes = _describe_kind(kind)[0]
        if not all(suffixes):
            return self._explain_folder_refusal(real)
        ends = f"what `{key}` names has to end in {' or '.join(suffixes)}"
        if not path.name.endswith(suffixes):
            return ends
        # A link in a cloned repository could lead to the user's .env. Tokenizers are exempt: their contents
        # are sent nowhere, and the hub's own tool stores them as links to names without a suffix.
        if kind != "tokenizer" and not real.name.endswith(suffixes):
            return f"this leads to {real}, and {ends} there, too"
        return ""

    def _resolve_typed_paths(self) -> set[str]:
        """Return the typed paths as absolute paths, as backends name their files."""
        return {str((self.base / one).absolute()) for one in self.typed if "\0" not in one}

    def _explain_folder_refusal(self, folder: Path) -> str:
        """Explain why a folder may not be named: one of its files leads out of the project, or is not YAML.
        Empty if it may."""
        assert self.root is not None
        for path in folder.glob("*.y*ml"):
            real = Path(os.path.realpath(path))
            if not real.is_relative_to(self.root) or not real.name.endswith((".yaml", ".yml")):
                return (
                    f"{path.name} in it leads to {real}, which is not a file of the job's project {self.root}"
                )
        return ""

    def require(self, kind: resources.Folder, name: str, key: str) -> Path:
        """Return the file as `find_file` does, and note an ambiguous name. Raises the kind's error also for
        an unknown shipped name; a missing path is left to the file's reader."""
        path, (suffixes, error, called) = self.find_file(kind, name, key), _describe_kind(kind)
        if doubt := describe_doubt(kind, name, key, self.base):
            self.doubts[doubt] = None
        if not path.exists() and "/" not in name:
            if all(suffixes) and name.endswith(suffixes):
                raise error(str(path), f"there is no such file.{suggest_file(path)}")
            if (own := self.base / f"{name}{suffixes[0]}").is_file():
                raise error(name, f"no such {error.what}; did you mean the file ./{own.name}?")
            raise error(
                name,
                f"no such {error.what}{suggest_name(name, resources.list_shipped(kind))}; "
                f"a file of your own is named by its path, as in ./my_{called}{suffixes[0]}.",
            )
        return path

    def _find(self, kind: Kind, name: str) -> Path:
        if kind != "tokenizer" and kind != "text":
            return resources.find(kind, name, self.base)
        try:
            return self.base / Path(name).expanduser()
        except RuntimeError:  # ~nobody
            return self.base / name


def allow_all_files() -> AllowedFiles:
    """Allow all files, for names that the user types."""
    return AllowedFiles(Path(), None)


def find_project(folder: Path) -> Path:
    """Return the project of a job in `folder`: the nearest marked folder above it, else its own."""
    own = Path(os.path.realpath(folder))
    return next((one for one in (own, *own.parents) if any(_is_there(one / mark) for mark in MARKERS)), own)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # an unreadable folder
        return False


# A pattern in files of each kind, so that a job with its space's name is not mistaken for the space.
_MARKS: dict[str, Callable[[], str]] = {
    "preference_space": make_space_mark,
    "label_sets": lambda: r"^labels\s*:",
}
_MOST = 65_536  # maximum characters examined of a file


def describe_doubt(kind: resources.Folder, name: str, key: str, base: Path) -> str | None:
    """Return a sentence if `name`, under a job's key `key`, is ambiguous; None if not. `base`: the folder of
    the job's relative names."""
    shipped = resources.find(kind, name, base)
    if not resources.is_shipped(kind, shipped) or not shipped.exists():
        return None
    for path in _list_candidates(kind, shipped.name, base):
        if _is_another(kind, path, shipped):
            own = os.path.relpath(path, base)
            own = own if own.startswith("..") else f"./{own}"
            return (
                f"`{key}: {name}` means the shipped file, not {path}; to use that one, write `{key}: {own}`"
            )
    return None


def _list_candidates(kind: resources.Folder, file: str, base: Path) -> Iterator[Path]:
    for folder in dict.fromkeys((base, Path())):
        yield from (folder / file, folder / kind / file)


def _is_another(kind: resources.Folder, path: Path, shipped: Path) -> bool:
    """Return whether a path is a file (or folder) of this kind with other contents than the
    shipped one."""
    try:
        if shipped.is_dir():
            return path.is_dir() and any(path.glob("*.y*ml")) and not path.samefile(shipped)
        if not path.is_file() or path.samefile(shipped):
            return False
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_MOST)
    except OSError:
        return False
    mark = _MARKS.get(kind)
    return (mark is None or re.search(mark(), text, re.MULTILINE) is not None) and text != shipped.read_text(
        encoding="utf-8"
    )[:_MOST]

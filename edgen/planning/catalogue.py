"""The catalogue of templates, with the metadata and variables of each.

The kind of answer that a template expects determines its possible variables; a template without one may use
the variables of any kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from edgen.core import resources
from edgen.core.errors import SpaceError, TemplateError, UsageError
from edgen.core.forms import list_answer_kinds
from edgen.core.yaml_values import read_text
from edgen.prompting import FrontMatter, Prompt, load_prompt
from edgen.prompting.front_matter import find_stray, read_front
from edgen.prompting.prompt import find_schema_file
from edgen.space import load_space
from edgen.space.model import list_template_fields, list_usual_variables, template_variables

_NOT_READ = (
    "the comment in line {line} looks like front matter and is not read: front matter comes first in a file, "
    "before anything else"
)


class TemplateInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A listed template."""

    name: str
    """Its name in a job: a shipped template's name, else the path."""
    file: str  # path of the file
    shipped: bool  # whether it is one of edgen's own
    title: str | None = None  # for people
    version: str | None = None  # version of the template
    expects: str | None = None  # kind of the answer
    uses: tuple[str, ...] = ()  # variables that it reads
    source: str | None = None  # origin of the wording
    licence: str | None = None  # licence of the wording
    notes: str | None = None  # for people
    sha256: str | None = None  # digest of the text
    remark: str | None = None
    """A warning about a usable template."""
    error: str | None = None
    """Why it cannot be used; other fields are then set as far as known."""
    schema: str | UnsetType = UNSET
    """The schema file next to it."""


def list_templates(paths: Iterable[Path]) -> list[TemplateInfo]:
    """Return the shipped templates by name, then the templates in this folder, in prompts/ and at `paths`,
    once each.

    Raises UsageError for a missing path.
    """
    shipped = [resources.find("prompts", name) for name in resources.list_shipped("prompts")]
    seen = {path.resolve() for path in shipped}
    entries = [describe_template(path, path.stem, shipped=True) for path in shipped]
    for path in (*_list_templates(Path()), *_list_templates(Path("prompts")), *_list_named_files(paths)):
        if path.resolve() not in seen:
            seen.add(path.resolve())
            # As a job must write it: a relative path that could be a bare name needs `./`.
            name = str(path) if path.is_absolute() or str(path).startswith(".") else f"./{path}"
            entries.append(describe_template(path, name, shipped=False))
    return entries


def describe_template(path: Path, name: str, *, shipped: bool) -> TemplateInfo:
    """Describe one template, usable or not."""
    try:
        prompt = load(path)
    except TemplateError as error:
        problems = "; ".join(map(str, error.problems))
        return TemplateInfo(
            name=name, file=str(path), shipped=shipped, error=f"{error.summary} {problems}".strip()
        )
    front: FrontMatter = prompt.front
    line = find_stray(prompt.text)
    known = [name for name in _list_usable(None) if name in prompt.variables_used]
    return TemplateInfo(
        name=name,
        file=str(path),
        shipped=shipped,
        title=front.name,
        version=front.version,
        expects=front.expects,
        uses=(*known, *sorted(prompt.variables_used - {*known})),
        source=front.source,
        licence=front.licence,
        notes=front.notes,
        sha256=prompt.sha256,
        remark=None if line is None else _NOT_READ.format(line=line),
        schema=UNSET if prompt.schema is None else str(find_schema_file(path)),
    )


def load(path: Path) -> Prompt:
    """Load a template for its stated kind of answer and its stated space, a shipped name or a file next to
    it.

    Raises TemplateError as `load_prompt` does.
    """
    front = read_front(read_text(path, TemplateError), str(path))
    names = _list_usable(front.expects)
    if front.space is None:
        return load_prompt(path, names)
    file = resources.find("preference_space", front.space, path.parent)
    try:
        space = load_space(file)
    except SpaceError as error:
        raise TemplateError(str(path), f"its front matter names a space that is invalid: {error}") from None
    usual = list_usual_variables()
    own = (*template_variables(space), *[name for name in names if name not in usual])
    return load_prompt(path, own, fields=list_template_fields(space))


def _list_usable(expects: str | None) -> tuple[str, ...]:
    """Return the variables that a template for this kind of answer may use; for None, of any kind."""
    kinds = list_answer_kinds()
    chosen = kinds.values() if expects is None else (kinds[expects],)
    usual = list_usual_variables() if any(kind.of_scenario for kind in chosen) else ()
    return tuple(dict.fromkeys((*usual, *(name for kind in chosen for name in kind.variables))))


def _list_templates(folder: Path) -> Iterator[Path]:
    # Skip pipes, which would block.
    yield from sorted(path for path in folder.glob("*.j2") if path.is_file() or path.is_dir())


def _list_named_files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from _list_templates(path)
        elif path.exists():
            yield path
        else:
            raise UsageError(f"{path}: there is no such file or folder.")

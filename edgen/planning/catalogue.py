"""Templates as things in themselves: which there are, and what each says of itself and uses.

What a template may use follows from what it expects; where it does not say, it may use what any may.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from edgen.core import resources
from edgen.core.answer_kinds import answer_kinds
from edgen.core.errors import SpaceError, TemplateError, UsageError
from edgen.core.yaml_values import read_text
from edgen.prompting import FrontMatter, Prompt, load_prompt
from edgen.prompting.answer_schema import schema_file
from edgen.prompting.front_matter import find_stray, read_front
from edgen.space import load_space
from edgen.space.education import EDUCATION_VARIABLES, template_fields, template_variables

_NOT_READ = (
    "the comment in line {line} looks like front matter and is not read: front matter comes first in a file, "
    "before anything else"
)


class TemplateInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A template as it is listed. `name` is what a job calls it: a shipped one's name, else the path.
    `error` is why it cannot be used; what is known of it all the same is there. `remark` is what is odd about one
    that can be used. `schema` is the file beside it that its answers have to fit."""

    name: str
    file: str
    shipped: bool
    title: str | None = None
    version: str | None = None
    expects: str | None = None
    uses: tuple[str, ...] = ()
    source: str | None = None
    licence: str | None = None
    notes: str | None = None
    sha256: str | None = None
    remark: str | None = None
    error: str | None = None
    schema: str | UnsetType = UNSET


def list_templates(paths: Iterable[Path]) -> list[TemplateInfo]:
    """The shipped templates by name, then those here, in the folder prompts/ and at `paths`, each once.

    Raises UsageError for a path that is not there.
    """
    shipped = [resources.find("prompts", name) for name in resources.shipped("prompts")]
    seen = {path.resolve() for path in shipped}
    entries = [describe_template(path, path.stem, shipped=True) for path in shipped]
    for path in (*_in(Path()), *_in(Path("prompts")), *_named(paths)):
        if path.resolve() not in seen:
            seen.add(path.resolve())
            # The path as a job has to write it: one that begins with a name of its own needs the dot.
            name = str(path) if path.is_absolute() or str(path).startswith(".") else f"./{path}"
            entries.append(describe_template(path, name, shipped=False))
    return entries


def describe_template(path: Path, name: str, *, shipped: bool) -> TemplateInfo:
    """What there is to say of one template, whatever is wrong with it."""
    try:
        prompt = load(path)
    except TemplateError as error:
        problems = "; ".join(map(str, error.problems))
        return TemplateInfo(
            name=name, file=str(path), shipped=shipped, error=f"{error.summary} {problems}".strip()
        )
    front: FrontMatter = prompt.front
    line = find_stray(prompt.text)
    known = [name for name in _usable(None) if name in prompt.variables_used]
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
        schema=UNSET if prompt.schema is None else str(schema_file(path)),
    )


def load(path: Path) -> Prompt:
    """A template for what it says it is for, and for the space that it names: a shipped one, or a file beside it.

    Raises TemplateError as `load_prompt` does.
    """
    front = read_front(read_text(path, TemplateError), str(path))
    names = _usable(front.expects)
    if front.space is None:
        return load_prompt(path, names)
    file = resources.find("preference_space", front.space, path.parent)
    try:
        space = load_space(file)
    except SpaceError as error:
        raise TemplateError(
            str(path), f"its front matter names a space that cannot be used: {error}"
        ) from None
    own = (*template_variables(space), *[name for name in names if name not in EDUCATION_VARIABLES])
    return load_prompt(path, own, fields=template_fields(space))


def _usable(expects: str | None) -> tuple[str, ...]:
    """What a template may use that expects this; that of any where it does not say."""
    kinds = answer_kinds()
    chosen = kinds.values() if expects is None else (kinds[expects],)
    return tuple(dict.fromkeys(name for kind in chosen for name in kind.variables))


def _in(folder: Path) -> Iterator[Path]:
    # No pipe, which would be waited for.
    yield from sorted(path for path in folder.glob("*.j2") if path.is_file() or path.is_dir())


def _named(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from _in(path)
        elif path.exists():
            yield path
        else:
            raise UsageError(f"{path}: there is no such file or folder.")

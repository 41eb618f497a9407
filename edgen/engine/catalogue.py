"""Templates as things in themselves: which there are, and what each says of itself and uses.

What a template may use follows from what it expects; where it does not say, it may use what any may.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from edgen import resources
from edgen.errors import TemplateError, UsageError
from edgen.prompting import SCENARIO_VARIABLES, Expects, Front, Prompt, load_prompt
from edgen.prompting.front import strayed
from edgen.protocols import adherence, expansion
from edgen.protocols.oracle import COMPARED
from edgen.protocols.stage import VARIABLES

# What a template may use, by what it expects; export_opening.j2 is told the side that is trained.
USABLE: dict[Expects, tuple[str, ...]] = {
    "conversation": SCENARIO_VARIABLES,
    "turn": tuple(dict.fromkeys((*VARIABLES["teacher"], *VARIABLES["student"]))),
    "probability": VARIABLES["closing_judge"],
    "verdict": tuple(dict.fromkeys((*SCENARIO_VARIABLES, *COMPARED["conversation"], *COMPARED["response"]))),
    "opening": ("role", *SCENARIO_VARIABLES),
    "sheet": adherence.VARIABLES,
    "values": expansion.VARIABLES,
}
_NOT_READ = (
    "the comment in line {line} looks like front matter and is not read: front matter comes first in a file, "
    "before anything else"
)
_ANY = tuple(dict.fromkeys(name for names in USABLE.values() for name in names))


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A template as it is listed. `name` is what a job calls it: a shipped one's name, else the path.
    `error` is why it cannot be used; what is known of it all the same is there. `remark` is what is odd about one
    that can be used."""

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


def listed(paths: Iterable[Path]) -> list[Entry]:
    """The shipped templates by name, then those here, in the folder prompts/ and at `paths`, each once.

    Raises UsageError for a path that is not there.
    """
    shipped = [resources.find("prompts", name) for name in resources.shipped("prompts")]
    seen = {path.resolve() for path in shipped}
    entries = [entry(path, path.stem, shipped=True) for path in shipped]
    for path in (*_in(Path()), *_in(Path("prompts")), *_named(paths)):
        if path.resolve() not in seen:
            seen.add(path.resolve())
            entries.append(entry(path, _path_name(path), shipped=False))
    return entries


def entry(path: Path, name: str, *, shipped: bool) -> Entry:
    """What there is to say of one template, whatever is wrong with it."""
    try:
        prompt = load(path)
    except TemplateError as error:
        problems = "; ".join(map(str, error.problems))
        return Entry(name=name, file=str(path), shipped=shipped, error=f"{error.summary} {problems}".strip())
    front: Front = prompt.front
    line = strayed(prompt.text)
    return Entry(
        name=name,
        file=str(path),
        shipped=shipped,
        title=front.name,
        version=front.version,
        expects=front.expects,
        uses=tuple(variable for variable in _ANY if variable in prompt.variables_used),
        source=front.source,
        licence=front.licence,
        notes=front.notes,
        sha256=prompt.sha256,
        remark=None if line is None else _NOT_READ.format(line=line),
    )


def load(path: Path) -> Prompt:
    """A template for what it says it is for. Raises TemplateError as `load_prompt` does."""
    prompt = load_prompt(path, _ANY)
    return prompt if prompt.front.expects is None else load_prompt(path, USABLE[prompt.front.expects])


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


def _path_name(path: Path) -> str:
    """The path as a job has to write it: one that begins with a name of its own needs the dot."""
    text = str(path)
    return text if path.is_absolute() or text.startswith(".") else f"./{text}"

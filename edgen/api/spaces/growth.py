"""More values for one list of a space: a model is asked for them, and a new file holds the old and the new ones."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from edgen.api.status import Calls, Tokens, Usage
from edgen.api.supervision.backends import open_backends
from edgen.api.supervision.beside import ledger_beside, load_asked_job, open_beside
from edgen.api.supervision.control import Control
from edgen.api.supervision.snapshot import Title
from edgen.api.supervision.supervise import supervise
from edgen.core.errors import EdgenError, ShortError, SpaceError, UsageError
from edgen.core.files import write_new
from edgen.core.yaml_values import nearest
from edgen.execution.session import Session
from edgen.execution.space_growth_tasks import SpaceGrowth, build_grown_space, load_growth_prompt
from edgen.execution.space_growth_tasks import grow_space as ask_for_values
from edgen.planning.allowed_files import unlimited
from edgen.planning.answer_schemas import check_schema
from edgen.space import dump_space, load_space, parse_space
from edgen.space.education import LISTS
from edgen.space.entries import MAX_ENTRIES
from edgen.store.ledger import RunStatus


class GrownSpace(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it, as `--json` prints it. `dropped` answers are counted by reason; `file` is None where nothing
    new was found."""

    space: str
    dimension: str
    present: int
    asked: int
    kept: int
    dropped: dict[str, int]
    answers: int
    empty: int
    model: str | None
    simulated: bool
    template: dict[str, str]
    file: str | None
    ledger: str
    calls: Calls
    tokens: Tokens
    cost_usd: float | None
    values: tuple[str, ...]

    def require_all(self) -> None:
        """Raise ShortError where there is less than was asked for: why, and what can be done."""
        if self.kept >= self.asked:
            return
        found = f"{self.kept} of {self.asked} new values were found; the last answers brought nothing new"
        if self.empty == self.answers:
            found = f"None of the {self.answers} answers lists values"
        written = f"What was found is in {self.file}." if self.file else "Nothing was written."
        raise ShortError(
            f"{found}. {written} Another model, a higher temperature or another seed "
            "(--set seed=…) with another -o may find more."
        )


def grow_space(
    space: str,
    dimension: str,
    count: int,
    control: Control,
    *,
    job: str | None = None,
    prompt: str = "space_expand",
    output: Path | None = None,
    overrides: tuple[str, ...] = (),
) -> GrownSpace:
    """Ask for `count` new values of a dimension, and write the new file. Values nearly the same as one that is there
    are dropped; every answer is kept in a ledger beside the new file, so nothing is asked twice.

    `job`: `JOB[:ROLE]` whose backend is asked; `prompt`: the template that asks; `output`: the new file,
    <name>-expanded.yaml where none is named. Raises UsageError where the file cannot be made, and what stops the asking.
    """
    path = unlimited().require("preference_space", space, "space")
    known = load_space(path)
    # Also what ED's files call the list.
    named = {**{LISTS.get(name, name): name for name in known.names}, **{name: name for name in known.names}}
    if dimension not in named:
        raise UsageError(f"--dimension {dimension}: no such dimension{nearest(dimension, known.names)}")
    grown = known[named[dimension]]
    if len(grown.entries) + count > MAX_ENTRIES:
        raise UsageError(f"--count {count}: a list holds at most {MAX_ENTRIES:,} values.")
    out = output if output is not None else Path(f"{path.stem}-expanded.yaml")
    _require_free(out)
    asked = load_asked_job(
        job, overrides, control, option="--job", work="space-expand", made_up="its values are made up"
    )
    template = load_growth_prompt(prompt)
    check_schema(template, asked.backends["default"], "$.backends.default")
    tasks = SpaceGrowth(asked, known, grown.name, count, template)
    ledger = ledger_beside(out)
    try:
        status = asyncio.run(_ask(tasks, out, control))
    except EdgenError:
        if ledger.exists():
            control.note(f"nothing was written yet; the answers so far are kept in {ledger}.")
        raise
    made = _describe(tasks, status, path, out, ledger)
    if made.kept:
        conditions = ("conditions",) if any(entry.when for entry in grown.entries) else ()
        if fields := (*grown.fields, *conditions):
            control.note(
                f"the new values have no {' and no '.join(fields)}, as the old ones do: add them by hand."
            )
        text = dump_space(build_grown_space(tasks, path.name))
        write_new_space(out, text)
        if known.knowledge is not None and not (beside := out.parent / known.knowledge.file).exists():
            write_new(beside, known.knowledge.text)
        try:
            parse_space(text, str(out), out)
        except SpaceError as problem:  # as where no other dimension has a value for the new ones
            control.note(f"the new file cannot be used before you mend this by hand. {problem}")
    return made


def _require_free(out: Path) -> None:
    """Raise UsageError where the new file cannot be made."""
    if out.exists() or out.is_symlink():
        raise UsageError(
            f"-o {out}: there is something of that name already, and nothing is overwritten; choose another name."
        )
    if not out.parent.is_dir():
        raise UsageError(f"-o {out}: there is no folder {out.parent}; make it first.")


async def _ask(tasks: SpaceGrowth, out: Path, control: Control) -> RunStatus:
    """Ask until there is enough; returns how the ledger stands. Raises what stopped it."""
    async with (
        open_backends(dict(tasks.job.backends), tasks.job.limits, control.trust) as backends,
        open_beside(out) as ledger,
    ):
        _require_free(out)  # who held it until now may have written it
        session = Session(tasks, backends, ledger, roles=("default",))
        session.counts.planned = tasks.wanted
        title = Title("space expand", outcomes=("kept", "dropped"))
        await supervise(session, title, control, lambda _monitor: ask_for_values(tasks, session))
        await ledger.flush()
        return ledger.status()


def _describe(tasks: SpaceGrowth, status: RunStatus, path: Path, out: Path, ledger: Path) -> GrownSpace:
    expanded = tasks.expanded
    assert expanded is not None
    return GrownSpace(
        space=str(path),
        dimension=tasks.dimension,
        present=len(tasks.space[tasks.dimension].entries),
        asked=tasks.wanted,
        kept=len(expanded.kept),
        dropped=expanded.dropped,
        answers=expanded.answers,
        empty=expanded.empty,
        model=tasks.model,
        simulated=tasks.simulated,
        template={"name": tasks.prompt.name, "sha256": tasks.prompt.sha256},
        file=str(out) if expanded.kept else None,
        ledger=str(ledger),
        values=expanded.kept,
        **msgspec.structs.asdict(Usage.of(status.counts)),
    )


def write_new_space(path: Path, text: str) -> None:
    """Write a new file, whole or not at all. Raises UsageError if one of that name has come meanwhile."""
    try:
        write_new(path, text)
    except FileExistsError:
        raise UsageError(
            f"-o {path}: something of that name has come meanwhile, and nothing is overwritten. "
            "Move it away and start the same command again: what was answered is stored."
        ) from None
    except OSError as problem:
        raise UsageError(f"-o {path}: it cannot be written ({problem.strerror}).") from None

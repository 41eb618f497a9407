"""More values for one dimension of a space: a model is asked for them, and a new file holds old and new
values."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from edgen.asking.call_estimates import NeededCalls
from edgen.asking.options import GrowthOptions
from edgen.asking.runner import FileStart
from edgen.asking.space_growth import GrowthAsker, build_grown_space
from edgen.core.errors import ShortError, SpaceError, UsageError
from edgen.core.files import write_new
from edgen.core.yaml_values import suggest_name
from edgen.execution.progress import CallCounts, Tokens, UsageCounts
from edgen.planning.allowed_files import allow_all_files
from edgen.runtime.control import Control
from edgen.space import dump_space, load_space, parse_space
from edgen.space.entries import MAX_ENTRIES
from edgen.space.model import name_list
from edgen.space.pictures import format_kept_text, name_kept_file
from edgen.store.ledger import run_status


class GrownSpace(msgspec.Struct, frozen=True, kw_only=True):
    """The result, in the form of `--json`."""

    space: str  # path of the space
    dimension: str  # name of the grown dimension
    present: int  # values before the call
    asked: int  # values wanted
    kept: int  # number of new values
    dropped: dict[str, int]  # dropped answers by reason
    answers: int  # replies of the model
    empty: int  # replies without a value
    model: str | None  # name of the model
    simulated: bool  # True if no model answered
    template: dict[str, str]  # `name` and `sha256` of the template
    file: str | None  # the new space; None without a new value
    ledger: str  # path of the ledger
    calls: CallCounts  # counts of calls
    tokens: Tokens  # of prompts and answers
    cost_usd: float | None  # US dollars; None without a price
    values: tuple[str, ...]  # new values

    def require_all(self) -> None:
        """Raise ShortError if values are missing, with the reason and a remedy."""
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


def grow_space(space: str, options: GrowthOptions, control: Control) -> GrownSpace:
    """Ask for new values of a dimension, and write the new file.

    Values nearly equal to a present one are dropped; every answer is kept in a ledger next to the new file,
    so nothing is requested twice. Raises UsageError for a file that cannot be made, and the error that
    stopped the requests.
    """
    start, path = _plan_growth(space, options, control)
    asker, out = start.asker, start.asker.out
    known, grown = asker.space, asker.space[asker.dimension]
    made = start.make(partial(_describe, path))
    if made.kept:
        conditions = ("conditions",) if any(entry.when for entry in grown.entries) else ()
        if fields := (*grown.fields, *conditions):
            control.note(
                f"the new values lack {' and '.join(fields)}, which the old ones have; add them by hand."
            )
        text = dump_space(build_grown_space(asker, path.name))
        write_new_space(out, text)
        if known.knowledge is not None and not (kept := out.parent / known.knowledge.file).exists():
            write_new(kept, known.knowledge.text)
        if known.pictures and not (kept := out.parent / name_kept_file(out.name)).exists():
            write_new(kept, format_kept_text(known.pictures))
        try:
            parse_space(text, str(out), out)
        except SpaceError as problem:  # for example, if no other dimension has a value for the new ones
            control.note(f"fix this by hand before you use the new file. {problem}")
    return made


def estimate_growth(space: str, options: GrowthOptions, control: Control) -> NeededCalls:
    """Return the calls of `grow_space` without stored answers. Raises its errors before its first call."""
    start, _ = _plan_growth(space, options, control)
    return start.estimate_calls()


def _plan_growth(space: str, options: GrowthOptions, control: Control) -> tuple[FileStart[GrowthAsker], Path]:
    """Return the start of the growth, and the file of the space. Raises UsageError and the errors of reading
    files."""
    path = allow_all_files().require("preference_space", space, "space")
    known, dimension, count = load_space(path), options.dimension, options.count
    # The key of a layout's list is accepted, too.
    named = {**{name_list(known, name): name for name in known.names}, **{name: name for name in known.names}}
    if dimension not in named:
        raise UsageError(f"--dimension {dimension}: no such dimension{suggest_name(dimension, known.names)}")
    grown = known[named[dimension]]
    if len(grown.entries) + count > MAX_ENTRIES:
        raise UsageError(f"--count {count}: a list holds at most {MAX_ENTRIES:,} values.")
    out = options.output if options.output is not None else Path(f"{path.stem}-expanded.yaml")
    given: dict[str, Any] = {"space": known, "dimension": grown.name, "wanted": count}
    return FileStart(GrowthAsker, out, control, options, **given), path


def _describe(path: Path, asker: GrowthAsker, ledger: Path) -> GrownSpace:
    expanded, used = asker.expanded, UsageCounts.of(run_status(ledger).counts)
    assert expanded is not None
    return GrownSpace(
        space=str(path),
        dimension=asker.dimension,
        present=len(asker.space[asker.dimension].entries),
        asked=asker.wanted,
        kept=len(expanded.kept),
        dropped=expanded.dropped,
        answers=expanded.answers,
        empty=expanded.empty,
        model=asker.model,
        simulated=asker.simulated,
        template={"name": asker.prompt.name, "sha256": asker.prompt.sha256},
        file=str(asker.out) if expanded.kept else None,
        ledger=str(ledger),
        values=expanded.kept,
        **msgspec.structs.asdict(used),
    )


def write_new_space(path: Path, text: str) -> None:
    """Write a new file atomically. Raises UsageError if the name has been taken in the meantime."""
    try:
        write_new(path, text)
    except FileExistsError:
        raise UsageError(
            f"-o {path}: another process has made this file meanwhile, and it is not overwritten. "
            "Move it and run the same command again: all answers are stored."
        ) from None
    except OSError as problem:
        raise UsageError(f"-o {path}: it cannot be written ({problem.strerror}).") from None

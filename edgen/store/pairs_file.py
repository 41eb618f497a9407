"""A run's pairs.jsonl, one pair per line; and its named sets of pairs, each with its own file.

pairs/pairs.jsonl          the default set
pairs/<name>/pairs.jsonl   a named one
(pairs between runs: pairs/against/<a>-vs-<b>/ in place of pairs/)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from edgen.core.errors import RunError, UsageError
from edgen.core.kept_files import has_digest, require_kept
from edgen.core.pair import Pair, Source
from edgen.store.ordered_lines import iterate_lines_between
from edgen.store.run_folder import RunFolder

DEFAULT = "default"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")
_TAKEN = ("judged", "rollouts", "against")  # other folders next to the sets
_pair = msgspec.json.Decoder(Pair).decode


def read_pairs(run: RunFolder) -> Iterator[Pair]:
    """Yield every pair, in order. Raises RunError if the file is missing or was changed, or a line is
    invalid."""
    path = run.pairs
    if not path.exists():
        raise RunError(f"{path}: there is no such file; `edgen pairs {run.path} --signal oracle` makes it.")
    yield from read_pairs_of(path, run.path)


def read_pairs_of(path: Path, run: Path) -> Iterator[Pair]:
    """Yield every pair of a file in the folder `run`. Raises RunError as `read_pairs`."""
    require_kept(path, f"Write it again with `edgen pairs {run} --signal …`; all verdicts are stored.")
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            yield _read(line, f"{path}, line {number}", run)


def read_pairs_of_scenario(run: RunFolder, scenario: int) -> list[Pair]:
    """Return the pairs of a scenario, in order. Raises RunError as `read_pairs`.

    An unchanged file is ordered by scenario, so a binary search finds the place.
    """
    path = run.pairs
    if not has_digest(path):  # changed by another program, in any order
        return [pair for pair in read_pairs(run) if pair.scenario == scenario]
    require_kept(path, f"Write it again with `edgen pairs {run.path} --signal …`; all verdicts are stored.")
    return [*read_pairs_between(run, range(scenario, scenario + 1))]


def read_pairs_between(run: RunFolder, scenarios: range) -> Iterator[Pair]:
    """Yield the pairs of some scenarios, in order. The file must be unchanged, since its digest is not
    checked. Raises RunError for an invalid line."""
    path = run.pairs

    def read(line: bytes) -> Pair:
        return _read(line, str(path), run.path)

    with path.open("rb") as file:
        for line in iterate_lines_between(
            file, path.stat().st_size, scenarios, lambda line: read(line).scenario
        ):
            yield read(line)


def _read(line: bytes, place: str, run: Path) -> Pair:
    """Return the pair of a line. Raises RunError with its place."""
    try:
        pair = _pair(line)
        if not 0 <= pair.scenario < 2**40:
            raise ValueError("no scenario has such a number")
    except (ValueError, RecursionError, msgspec.MsgspecError) as problem:
        raise RunError(
            f"{place}: this is not a valid pair ({problem}). Make the file again with "
            f"`edgen pairs {run} --signal …`; all verdicts are stored."
        ) from None
    return pair


def list_places_of_pairs(run: RunFolder) -> list[RunFolder]:
    """Return a run's folder for its own pairs, and one more for each place of pairs with other runs."""
    places = [RunFolder(run.path)]
    for folder in sorted(run.against.glob("*/")):
        places.append(RunFolder(run.path))
        places[-1].place_pairs(folder)
    return places


def use_pair_set(run: RunFolder, name: str | None) -> None:
    """Make a run's folder use the pairs of a set; None and "default" mean the default set. Raises UsageError
    for an invalid name."""
    if name is None or name == DEFAULT:
        run.pairs = run.pairs_folder / "pairs.jsonl"
        return
    if not _NAME.fullmatch(name) or name in _TAKEN:
        raise UsageError(
            f"{name!r} cannot be the name of a pair set: give 1 to 60 letters, digits and signs of _ . -, "
            f"with a letter or a digit first, and none of {', '.join(_TAKEN)}."
        )
    run.pairs = run.pairs_folder / name / "pairs.jsonl"


def require_pair_set(run: RunFolder, name: str | None) -> None:
    """Use an existing set, as `use_pair_set` does. Raises UsageError if there is no set of that name."""
    use_pair_set(run, name)
    if name not in (None, DEFAULT) and not run.pairs.exists():
        found = ", ".join(list_pair_sets(run)) or "none yet"
        raise UsageError(
            f"{run.pairs_folder}: there is no pair set {name!r} (sets: {found}); `edgen pairs` with "
            f"`--signal … --name {name}` makes it."
        )


def list_pair_sets(run: RunFolder) -> list[str]:
    """Return the names of a run's sets, the default set first."""
    folder = run.pairs_folder
    named = sorted(path.parent.name for path in folder.glob("*/pairs.jsonl"))
    found = [name for name in named if _NAME.fullmatch(name) and name not in (*_TAKEN, DEFAULT)]
    return [DEFAULT, *found] if (folder / "pairs.jsonl").exists() else found


def find_label_source(run: RunFolder) -> Source | None:
    """Return the source of the labels of a run's pairs; None without labels."""
    if not run.pairs.exists():
        return None
    return next((pair.label.by for pair in read_pairs(run) if pair.label is not None), None)

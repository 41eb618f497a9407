"""The layers of runs in a run that is made of them: what was said of the conversations that are in it.

Several runs' labels are one layer where the label set, the units and every annotator are the same in all of them.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgen.core.errors import RunError
from edgen.core.files import open_regular, read_regular, replacing, write_lines
from edgen.store.layers import LayerJoin, UnitLabels, layer_file, layer_files
from edgen.store.ledger import Drop
from edgen.store.run_folder import RunFolder
from edgen.store.run_reader import RunReader

_NOTED = "layer.json"
_MOST_NOTED = 4_000_000  # bytes
_SAMPLE = "sample"  # how many conversations an annotator was asked about: no part of who it is
_encode = msgspec.json.Encoder().encode


def find_unlike_layers(runs: Sequence[RunFolder]) -> dict[str, str]:
    """A sentence about each layer that is another one in some of these runs, by its name."""
    found: dict[str, str] = {}
    first: dict[tuple[str, str], tuple[RunFolder, Any]] = {}
    for run in runs:
        for path in _noted(run):
            name, file = path.relative_to(run.layers).parts[0], path.name
            facts = _read(path)
            before, theirs = first.setdefault((name, file), (run, facts))
            if facts != theirs:
                what = "its labels or units" if file == _NOTED else f"the annotator {path.stem}"
                found.setdefault(
                    name,
                    f"The layer {name} is not carried on: {what} is not the same in {run.path} and in {before.path}. "
                    "It stays in each of them.",
                )
    return found


def layer_of(run: RunFolder, path: Path) -> str | None:
    """The layer that a file of a run belongs to; None for one of no layer."""
    return path.relative_to(run.layers).parts[0] if path.is_relative_to(run.layers) else None


def carry_layers(runs: Sequence[RunFolder], to: RunFolder, without: Collection[str], drop: Drop) -> None:
    """Write the layers of `runs` into the run `to`: what they say of its conversations, as these are in it. Where two say
    something else of one, the first counts, and `drop` is told of the other."""
    for noted in (path for run in runs for path in sorted(run.layers.glob(f"*/{_NOTED}"))):
        made = to.layers / noted.parent.name / _NOTED
        if noted.parent.name not in without and not made.exists():
            made.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(noted, made)
    _carry_people(runs, to, without)
    names = [name for name in _names(runs, to) if name not in without]
    if not names:
        return
    for name in names:
        layer_file(to, name).parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        files = {name: stack.enter_context(replacing(layer_file(to, name))) for name in names}
        for other, layer, units in _carried(runs, to, names):
            if other is None:
                files[layer].writelines(_encode(unit) + b"\n" for unit in units)
            else:
                for unit in units:
                    drop(
                        {
                            "kind": "labels",
                            "run": str(other.path),
                            "layer": layer,
                            **msgspec.to_builtins(unit),
                        }
                    )


def _carry_people(runs: Sequence[RunFolder], to: RunFolder, without: Collection[str]) -> None:
    """What people said, which only grows, and of which the last line about a unit counts: that of the first run."""
    found: dict[Path, dict[bytes, None]] = {}
    for run in reversed(runs):
        for path in sorted(run.layers.glob("*/annotators/*.jsonl")):
            if layer_of(run, path) not in without:
                lines = found.setdefault(path.relative_to(run.layers), {})
                with open_regular(path) as file:
                    for line in (one.rstrip(b"\n") for one in file):
                        lines.pop(line, None)
                        lines[line] = None
    for name, lines in found.items():
        made = to.layers / name
        made.parent.mkdir(parents=True, exist_ok=True)
        write_lines(made, lines)


def _carried(
    runs: Sequence[RunFolder], to: RunFolder, names: Sequence[str]
) -> Iterator[tuple[RunFolder | None, str, Sequence[UnitLabels]]]:
    """(None, layer, units) of every conversation, in order; (run, layer, units) where a further run says something else."""
    with contextlib.ExitStack() as stack:
        joins = [(run, stack.enter_context(LayerJoin(run, names))) for run in runs]
        reader = stack.enter_context(RunReader(to.path))
        for index, called in reader.scenarios():
            for one in (reader.candidate(index, name) for name in called):
                kept: dict[str, Sequence[UnitLabels]] = {}
                for run, join in joins:
                    for layer, units in join.of(index, one.id, one.turns).items():
                        if layer not in kept:
                            kept[layer] = units
                            yield None, layer, units
                        elif units != kept[layer]:
                            yield run, layer, units


def _names(runs: Sequence[RunFolder], to: RunFolder) -> list[str]:
    """The layers of these runs that the run `to` does not have already, as an arm has those of its run."""
    there = layer_files(to)
    own = {name for run in runs for name, path in layer_files(run).items() if path.is_relative_to(run.layers)}
    return sorted(own | {name for run in runs for name in layer_files(run) if name not in there})


def _noted(run: RunFolder) -> list[Path]:
    """What a run notes of its layers and of their annotators."""
    return sorted([*run.layers.glob(f"*/{_NOTED}"), *run.layers.glob("*/annotators/*.json")])


def _read(path: Path) -> Any:
    try:
        facts = msgspec.json.decode(read_regular(path, _MOST_NOTED))
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as problem:
        raise RunError(f"{path}: it cannot be read ({problem}).") from None
    if isinstance(facts, Mapping):
        return {key: fact for key, fact in facts.items() if key != _SAMPLE}
    return facts

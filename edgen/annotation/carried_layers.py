"""Layers of existing runs, carried into a run that is made from them.

Layers of several runs are joined if their label set, units and annotators are the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgen.annotation.layer import read_noted
from edgen.core.files import open_regular
from edgen.core.kept_files import replace_kept, require_kept
from edgen.store.layers import LayerJoin, UnitLabels, find_layer_file, find_layer_files
from edgen.store.ledger.merge import Drop
from edgen.store.run_folder import SAMPLE, RunFolder
from edgen.store.run_reader import RunReader

_NOTED = "layer.json"
_RESTORE = "Restore it from a copy, or run the command that made it again."
_encode = msgspec.json.Encoder().encode


def find_unlike_layers(runs: Sequence[RunFolder]) -> dict[str, str]:
    """Return a sentence for each layer that differs between these runs, by the layer's name."""
    found: dict[str, str] = {}
    first: dict[tuple[str, str], tuple[RunFolder, Any]] = {}
    for run in runs:
        for path in sorted([*run.layers.glob(f"*/{_NOTED}"), *run.layers.glob("*/annotators/*.json")]):
            name, file = path.relative_to(run.layers).parts[0], path.name
            facts = _read(path)
            before, theirs = first.setdefault((name, file), (run, facts))
            if facts != theirs:
                what = "its labels or units" if file == _NOTED else f"the annotator {path.stem}"
                found.setdefault(
                    name,
                    f"The layer {name} is not carried on: {what} is not the same in {run.path} and in "
                    f"{before.path}. It stays in each of them.",
                )
    return found


def find_layer(run: RunFolder, path: Path) -> str | None:
    """Return the layer that a run's file belongs to; None if it belongs to none."""
    return path.relative_to(run.layers).parts[0] if path.is_relative_to(run.layers) else None


def carry_layers(runs: Sequence[RunFolder], to: RunFolder, without: Collection[str], drop: Drop) -> None:
    """Write the layers of `runs` into the run `to`, for its conversations with unchanged texts. If two runs
    label a unit differently, the first run's labels count, and `drop` gets the others."""
    for noted in (path for run in runs for path in sorted(run.layers.glob(f"*/{_NOTED}"))):
        made = to.layers / noted.parent.name / _NOTED
        if noted.parent.name not in without and not made.exists():
            copy_with_note(noted, to, made)
    _carry_people(runs, to, without)
    names = [name for name in _list_missing_names(runs, to) if name not in without]
    if not names:
        return
    for name in names:
        find_layer_file(to, name).parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        files = {
            name: stack.enter_context(replace_kept(to.path, find_layer_file(to, name))) for name in names
        }
        for other, layer, units in _iterate_carried_labels(runs, to, names):
            if other is None:
                for unit in units:
                    files[layer].write_line(_encode(unit))
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
    """Copy people's labels. Their files are append-only, and the last line about a unit counts, so the first
    run's lines come last."""
    found: dict[Path, dict[bytes, None]] = {}
    for run in reversed(runs):
        for path in sorted(run.layers.glob("*/annotators/*.jsonl")):
            if find_layer(run, path) not in without:
                require_kept(path, _RESTORE)
                lines = found.setdefault(path.relative_to(run.layers), {})
                with open_regular(path) as file:
                    for line in (one.rstrip(b"\n") for one in file):
                        lines.pop(line, None)
                        lines[line] = None
    for name, lines in found.items():
        made = to.layers / name
        made.parent.mkdir(parents=True, exist_ok=True)
        to.write_lines(made, lines, grows=True)


def _iterate_carried_labels(
    runs: Sequence[RunFolder], to: RunFolder, names: Sequence[str]
) -> Iterator[tuple[RunFolder | None, str, Sequence[UnitLabels]]]:
    """Yield (None, layer, units) for every conversation, in order, and (run, layer, units) for each further
    run whose labels differ."""
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


def _list_missing_names(runs: Sequence[RunFolder], to: RunFolder) -> list[str]:
    """Return the layers of these runs that the run `to` lacks. An arm also has the layers of its run."""
    there = find_layer_files(to)
    own = {
        name
        for run in runs
        for name, path in find_layer_files(run).items()
        if path.is_relative_to(run.layers)
    }
    return sorted(own | {name for run in runs for name in find_layer_files(run) if name not in there})


def copy_with_note(noted: Path, to: RunFolder, made: Path) -> None:
    """Copy a run's notes on a layer or an annotator to the file `made` of the run `to`."""
    require_kept(noted, _RESTORE)
    made.parent.mkdir(parents=True, exist_ok=True)
    to.write_texts({made: noted.read_text("utf-8")})


def _read(path: Path) -> dict[str, Any]:
    facts = read_noted(path, dict[str, Any], _RESTORE) or {}
    return {key: fact for key, fact in facts.items() if key != SAMPLE}

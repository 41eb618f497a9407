"""The card's facts about judges and annotators: the template, model and settings of each.

They come from the notes next to the ledgers, since options of `edgen pairs` and `edgen annotate` may replace
the job's judge, annotator and templates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from edgen.annotation.layer import LayerFolder
from edgen.export.caveats import select_backend_facts
from edgen.export.evidence import Evidence
from edgen.export.format import Format
from edgen.preferences.comparisons import read_judge_notes
from edgen.store.run_reader import RunReader


def describe_labellers(run: RunReader, format_: Format, evidence: Iterable[Evidence]) -> dict[str, Any]:
    """Return facts about the judges of rows and the annotators of exported layers, by their names. Raises
    DamagedError for changed notes on an annotator."""
    judges = {one.judge for one in evidence}
    every = format_.layout.layer_columns is not None
    return {
        "judge": {
            judge: _describe(notes)
            for judge, notes in read_judge_notes(run.rundir).items()
            if judge in judges
        },
        "layer": {
            layer.name: _describe_annotators(LayerFolder(run.rundir.whole or run.rundir, layer.name))
            for layer in run.layers
            if every or layer.name in run.labels_of
        },
    }


def _describe_annotators(layer: LayerFolder) -> dict[str, Any]:
    people: dict[str, Any] = dict.fromkeys(layer.list_people(), "a person")
    return people | {name: _describe(layer.read_facts(name) or {}) for name in layer.list_ledgers()}


def _describe(notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the public facts of an asker's notes: template, backend and settings."""
    template, backend = (notes.get(key) or {} for key in ("template", "backend"))
    return {
        "template": PurePath(template.get("name", "")).stem or None,
        "template_sha256": template.get("sha256"),
        "backend": select_backend_facts(backend),
        **{key: notes[key] for key in ("asker", "compare", "forms", "together", "sample") if key in notes},
    }

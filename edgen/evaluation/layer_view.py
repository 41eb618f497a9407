"""The figures of a layer, and its comparison with gold labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from edgen.annotation.identical import find_identical_annotators
from edgen.annotation.label_files import read_label_file
from edgen.annotation.layer import LayerFolder, LayerNotes, read_noted
from edgen.core.errors import DataError, UsageError
from edgen.core.extras import require_extra
from edgen.protocols.labelled_units import LabellingTask
from edgen.reading.answers.unit_labels import Labels
from edgen.runtime.control import Control
from edgen.store.layers import LabelsByLayer, LayerJoin, find_layer_files
from edgen.store.run_reader import RunReader

if TYPE_CHECKING:
    from edgen.evaluation.gold_agreement import GoldFigures
    from edgen.evaluation.layer_figures import LayerFigures


class Gold:
    """The gold labels of a layer's units: another layer of the run, or a file, which is read at once.

    Raises UsageError or DataError if they cannot be used.
    """

    def __init__(self, named: str, reader: RunReader, layer: LayerFolder, asking: LabellingTask) -> None:
        require_extra("analysis", "Figures against gold")
        self.name = named
        self.layer: str | None = None
        self._given: dict[str, dict[int | None, Labels]] = {}
        layers = find_layer_files(reader.rundir)
        if named == layer.name:
            raise UsageError(f"--gold {named}: this is the layer itself; name another one, or a file.")
        if named in layers:
            self.layer = named
            _require_same_task(named, read_noted(layers[named].with_name("layer.json"), LayerNotes), asking)
            return
        if not Path(named).exists():
            there = ", ".join(sorted({*layers} - {layer.name})) or "none"
            raise DataError(
                named, f"there is no such file, and no such layer of this run (other layers: {there})."
            )
        for one in read_label_file(Path(named), reader, asking, gold=True).labels:
            self._given.setdefault(one.id, {})[one.turn] = one.labels

    def of(self, identifier: str, labels: LabelsByLayer) -> Mapping[int | None, Labels]:
        """Return the gold labels of a conversation, by turn (None: of the whole conversation); ties have
        none. `labels`: the conversation's labels by layer."""
        if self.layer is None:
            return self._given.get(identifier, {})
        return {unit.turn: unit.labels for unit in labels.get(self.layer, ()) if unit.labels}


def compute_layer_figures(
    reader: RunReader, layer: LayerFolder, asking: LabellingTask, gold: Gold | None, control: Control
) -> tuple[LayerFigures | None, GoldFigures | None]:
    """Return the figures of a layer over all arms, and against gold; None without gold. Without the extra
    `analysis`, note this and return None for both."""
    try:
        require_extra("analysis", "Figures about the labels")
    except UsageError as missing:
        control.note(str(missing))
        return None, None
    from edgen.evaluation.gold_agreement import GoldCount
    from edgen.evaluation.layer_figures import LayerCount
    from edgen.stats.clusters import Clusters

    identical = find_identical_annotators(reader.rundir).get(layer.name, ())
    count, clusters = LayerCount(asking.labels, identical), Clusters()
    against = None if gold is None else GoldCount(gold.name)
    names = [layer.name, *([gold.layer] if gold is not None and gold.layer is not None else [])]
    with LayerJoin(reader.rundir, names) as layers:
        for one in reader.candidates():
            labels = layers.of(one.scenario, one.id, one.turns)
            units, cluster = labels.get(layer.name, ()), clusters.of(one.scenario)
            if units:
                count.see(cluster, len(one.turns), units)
            if against is not None and gold is not None:
                against.see(cluster, units, gold.of(one.id, labels))
    return count.result(), None if against is None else against.result()


def _require_same_task(named: str, noted: LayerNotes | None, asking: LabellingTask) -> None:
    if noted is None:
        return
    if noted.unit != asking.unit:
        raise UsageError(
            f"--gold {named}: this layer labels {noted.unit}s, and the other one {asking.unit}s."
        )
    if unknown := [one for one in noted.labels.names if one not in asking.labels.names]:
        raise UsageError(
            f"--gold {named}: this layer has labels that the other one lacks: {', '.join(unknown[:10])} (it "
            f"has: {', '.join(asking.labels.names[:20])})."
        )

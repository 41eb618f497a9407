"""The labels of a run's layers as columns, and the card's notes on them.

The value is null, or an empty cell, for an unlabelled turn or conversation, and an empty list without a
majority. If there are several annotators, each has its own columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from edgen.core.text import escape_markdown, quantity
from edgen.export.conversation_rows import Columns
from edgen.export.rows import ColumnType
from edgen.store.layers import Cell, LayerFacts, make_cell, name_column
from edgen.store.run_parts import AcceptedConversation
from edgen.store.run_reader import RunReader


def columns_of(layers: Sequence[LayerFacts]) -> Columns:
    """Return a column for each layer and each of its annotators, for rows of conversations."""
    found: dict[str, tuple[ColumnType, str]] = {}
    for layer, annotator in _list_layer_annotators(layers):
        type_: ColumnType = "labels" if layer.whole else "turn_labels"
        of = "the conversation" if layer.whole else "each turn, a list of labels a turn"
        found[name_column(layer.name, annotator)] = (
            type_,
            f"{_describe_annotators(layer, annotator)} for {of}{_EMPTY[layer.whole]}",
        )
    return found


def cells_of(layers: Sequence[LayerFacts], conversation: AcceptedConversation) -> dict[str, Cell]:
    """Return the values of the columns of `columns_of`."""
    turns = len(conversation.candidate.turns)
    return {
        name_column(layer.name, annotator): make_cell(
            conversation.labels.get(layer.name, ()), turns, annotator
        )
        for layer, annotator in _list_layer_annotators(layers)
    }


def texts_of(layers: Sequence[LayerFacts]) -> Columns:
    """Return a column for each layer, for rows of turns."""
    empty = "joined by commas; empty without a majority and without labels"
    of = {True: "conversation", False: "turn"}
    return {
        name_column(layer.name): (
            "string",
            f"{_describe_annotators(layer, None)} for the {of[layer.whole]}, {empty}",
        )
        for layer in layers
    }


def texts_in(layers: Sequence[LayerFacts], conversation: AcceptedConversation) -> Iterator[dict[str, str]]:
    """Yield the values of the columns of `texts_of`, turn by turn."""
    by_layer = {
        layer: {unit.turn: ", ".join(unit.labels) for unit in conversation.labels.get(layer.name, ())}
        for layer in layers
    }
    for place in range(len(conversation.candidate.turns)):
        yield {
            name_column(layer.name): said.get(None if layer.whole else place, "")
            for layer, said in by_layer.items()
        }


def list_layer_notes(run: RunReader) -> Iterator[str]:
    """Yield the card's notes on the layer that labels the turns, and on omissions from layers."""
    chosen = [layer for layer in run.layers if layer.name in run.labels_of] if run.labels_of else []
    if chosen:
        told = "; ".join(
            f"of the layer `{layer.name}`: {_describe_annotators(layer, None)}" for layer in chosen
        )
        yield (
            f"The labels are those {told}. They replace the turns' own; turns outside these layers, or "
            "without a majority label, have none. Responses that the conversation did not continue with are "
            "in no layer and are left out."
        )
    for what, count in sorted(run.stale_labels.items()):
        yield f"{quantity(count, 'unit')} left out of the layer {escape_markdown(what)}."


def _list_layer_annotators(layers: Sequence[LayerFacts]) -> Iterator[tuple[LayerFacts, str | None]]:
    for layer in layers:
        yield layer, None
        if len(layer.annotators) > 1:
            yield from ((layer, annotator) for annotator in layer.annotators)


def _describe_annotators(layer: LayerFacts, annotator: str | None) -> str:
    if annotator is not None:
        return f"labels by the annotator {escape_markdown(annotator)}"
    if len(layer.annotators) == 1:
        return f"labels by the annotator {escape_markdown(layer.annotators[0])}"
    return f"labels by the majority of the annotators ({', '.join(map(escape_markdown, layer.annotators))})"


_EMPTY = {
    True: "; empty without a majority, null without labels",
    False: "; empty without a majority, null where a turn, or all of them, has no labels",
}

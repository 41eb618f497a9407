"""What expressions see of the labels that stand beside a conversation."""

from __future__ import annotations

from collections.abc import Sequence

from edgen.core.values import Role
from edgen.expressions.conversation import Labels
from edgen.store.layers import LabelsByLayer, UnitLabels


def labels_of(found: LabelsByLayer) -> Labels:
    """The majority's labels of a conversation, by layer."""

    def get(layer: str, _conversation: str) -> Sequence[tuple[Role, str]] | float | None:
        return _value(found.get(layer, ()))

    return get


def _value(units: Sequence[UnitLabels]) -> Sequence[tuple[Role, str]] | float | None:
    """The labels with who spoke them; a number where one label of the whole conversation is one. Of a conversation of which
    no unit has a label nothing is known, unless its turns were labelled."""
    labels = tuple((unit.role or "", label) for unit in units for label in unit.labels)
    if any(unit.turn is not None for unit in units):
        return labels
    if len(labels) == 1 and (value := _number(labels[0][1])) is not None:
        return value
    return labels or None


def _number(label: str) -> float | None:
    """The number that a label is, as on a scale."""
    try:
        return float(label) if len(label) < 20 and label.isascii() and label[0] in "+-.0123456789" else None
    except ValueError:
        return None

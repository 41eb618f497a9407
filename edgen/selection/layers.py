"""What expressions see of the labels that stand beside a conversation."""

from __future__ import annotations

from collections.abc import Sequence

from edgen.core.values import Role
from edgen.expressions.conversation import Labels, label_value
from edgen.store.layers import LabelsByLayer


def labels_of(found: LabelsByLayer) -> Labels:
    """The majority's labels of a conversation, by layer."""

    def get(layer: str, _conversation: str) -> Sequence[tuple[Role, str]] | float | None:
        if layer not in found:
            return None
        return label_value((unit.turn, unit.role, unit.labels) for unit in found[layer])

    return get

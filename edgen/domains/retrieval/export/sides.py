"""Three sides of a run: the test side is the run's; a part of its train side is for validation."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from edgen.plugin import RunReader
from edgen.plugin.formats import AcceptedConversation

Side = Literal["train", "dev", "test"]
DevShare = Annotated[
    Annotated[float, Meta(ge=0, lt=1)], Meta(description="The validation side's share of train.")
]


class Sides:
    """The side of each conversation of a run. `dev` is the share of the train side for validation, in whole
    groups of the run's split."""

    def __init__(self, run: RunReader, dev: float) -> None:
        self._run, self._held_out = run, run.hold_out(dev)

    def of(self, conversation: AcceptedConversation) -> Side:
        """Return the side of a conversation."""
        if conversation.split == "test":
            return "test"
        return "dev" if self._held_out.is_test(self._run.group(conversation.scenario)) else "train"

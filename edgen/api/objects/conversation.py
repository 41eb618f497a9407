"""One accepted conversation of a run, as a frozen value."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from edgen.api.objects.html import conversation_html
from edgen.core.values import Scenario, Turn
from edgen.store.run_reader import AcceptedConversation


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """`id` as the shards have it; `scenario["topic"]` is a value of the scenario; `split` is the side it is on;
    `probability` that the student understood, None where none was told; `ended_by` who spoke the end marker;
    `provenance` says how it was made; `arm` is empty where the run has no arms.

    >>> one = Conversation(
    ...     id="lessons-000000-r0",
    ...     scenario=Scenario(0, {"topic": "Fractions"}),
    ...     turns=(Turn("Teacher", "What is a half?"), Turn("Student", "One of two.")),
    ...     probability=0.8,
    ...     ended_by="Student",
    ...     split="train",
    ...     arm="",
    ...     replicate=0,
    ...     provenance={},
    ... )
    >>> print(one)
    Teacher: What is a half?
    Student: One of two.
    >>> one.scenario["topic"], one.as_row()["topic"]
    ('Fractions', 'Fractions')
    """

    id: str
    scenario: Scenario
    turns: tuple[Turn, ...]
    probability: float | None
    ended_by: str | None
    split: Literal["train", "test"]
    arm: str
    replicate: int
    provenance: dict[str, Any]

    def as_row(self) -> dict[str, Any]:
        """As a table has it: the scenario's index, a column for every dimension and for every field of its entries."""
        scenario = self.scenario.as_row()
        return {
            "id": self.id,
            "scenario": scenario.pop("index"),
            "replicate": self.replicate,
            "arm": self.arm,
            "split": self.split,
            **scenario,
            "turns": [{"role": turn.role, "text": turn.text} for turn in self.turns],
            "probability": self.probability,
            "ended_by": self.ended_by,
            "model": self.provenance.get("model"),
            "simulated": self.provenance.get("simulated"),
        }

    def __repr__(self) -> str:
        return f"<Conversation {self.id}: {len(self.turns)} turns>"

    def __str__(self) -> str:
        return "\n".join(f"{turn.role}: {turn.text}" for turn in self.turns)

    def _repr_html_(self) -> str:
        return conversation_html(self.id, self.scenario, self.turns, self.probability)


def make_conversation(accepted: AcceptedConversation) -> Conversation:
    """The value that a run's reader has read."""
    candidate = accepted.candidate
    return Conversation(
        id=candidate.id,
        scenario=accepted.scenario,
        turns=candidate.turns,
        probability=candidate.probability,
        ended_by=candidate.ended_by,
        split=accepted.split,
        arm=candidate.arm,
        replicate=candidate.replicate,
        provenance=accepted.provenance,
    )

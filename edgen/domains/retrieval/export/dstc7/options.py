"""Options of a response-selection set in DSTC7's layout."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, Literal

from msgspec import Meta

from edgen.domains.retrieval.export.msdialog import AgentOptions
from edgen.domains.retrieval.export.sides import DevShare
from edgen.domains.retrieval.options import CANDIDATES
from edgen.plugin.errors import UsageError
from edgen.plugin.formats import flag_of

Negatives = Literal["random", "same-topic", "bm25", "written"]
Share = Annotated[float, Meta(ge=0, le=1)]
_NAME = re.compile(r"[\w.-]{1,80}", re.ASCII)
# The sub-tasks that support a choice.
_COUNTS: dict[str, tuple[int, ...]] = {
    "none": (4,), "pool": (2,), "pool_from": (2,),
    **dict.fromkeys(("candidates", "negatives", "topic", "tests"), (1, 3, 4, 5)),
}  # fmt: skip


class Dstc7Options(AgentOptions, frozen=True, kw_only=True):
    """The options of the format."""

    subtask: Annotated[
        Literal[1, 2, 3, 4, 5],
        Meta(
            description=(
                "The sub-task. 1: choose the next utterance; 2: among one large pool; 3: it and its "
                "paraphrases; 4: perhaps none of the candidates; 5: with a knowledge file and "
                "profiles."
            )
        ),
    ] = 1
    cuts: Annotated[
        Literal["one", "all"],
        Meta(
            description="One example of each conversation, drawn by the seed, or one at every eligible turn."
        ),
    ] = "one"
    candidates: Annotated[int, Meta(ge=2, le=10_000), CANDIDATES] = 100
    negatives: Annotated[
        Negatives,
        Meta(
            description=(
                "Where wrong candidates come from: any agent's turns, those of the same topic, the "
                "nearest to the true one by BM25, or texts of `edgen annotate --write wrong`."
            )
        ),
    ] = "random"
    topic: Annotated[
        str | None,
        Meta(description="The dimension for --negatives same-topic; without it, the space's first."),
    ] = None
    speakers: Annotated[
        Literal["dstc7", "roles"],
        Meta(
            description="participant_1 for users and participant_2 for agents, or the roles' names in lower "
            "case."
        ),
    ] = "dstc7"
    dev: DevShare = 0.1  # the development set's share of training conversations
    none: Annotated[
        Share, Meta(description="The share of examples without the right one, in sub-task 4.")
    ] = 0.2
    tests: Annotated[
        Literal[1, 2],
        Meta(
            description=(
                "Advising's kinds of test sets. 1: training conversations in other words, by texts "
                "of `edgen annotate --write paraphrases --after 0`; 2: conversations of the run's "
                "test side, which training has not seen."
            )
        ),
    ] = 2
    pool: Annotated[
        Annotated[int, Meta(ge=2, le=10_000_000)], Meta(description="The maximum size of sub-task 2's pool.")
    ] = 120_000
    pool_from: Annotated[
        tuple[str, ...],
        Meta(
            description="Other runs, whose agents' turns fill sub-task 2's pool where the run is too small."
        ),
    ] = ()
    prefix: Annotated[
        str | None,
        Meta(description="The beginning of file names; ParlAI looks for ubuntu. Without it, the run's name."),
    ] = None

    def check(self, given: Collection[str]) -> None:
        """Raise UsageError for a choice that the sub-task does not support, and for a prefix that is not a
        valid file name."""
        for name, subtasks in _COUNTS.items():
            if name in given and self.subtask not in subtasks:
                these = " or ".join(map(str, subtasks))
                raise UsageError(f"{flag_of(name)} applies only to --subtask {these}; leave it out.")
        if self.topic is not None and self.negatives != "same-topic":
            raise UsageError("--topic applies only to --negatives same-topic; leave it out.")
        if self.prefix is not None and (not _NAME.fullmatch(self.prefix) or self.prefix.startswith(".")):
            raise UsageError(
                f"--prefix {self.prefix}: a file's name begins with it; take letters, digits, dots, hyphens "
                "and underscores."
            )

    def left_out(self) -> tuple[str, ...]:
        """Return the tables of other sub-tasks."""
        return tuple(name for name, subtask in (("pool", 2), ("dialogs", 3)) if subtask != self.subtask)

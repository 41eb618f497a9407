"""Credit of one turn: the evidence for a label.

`whole`: a verdict on both whole conversations, so the turn at which they part gets the credit for all later
turns. `response`: a verdict on the two responses alone. `rollouts`: the conversation continues k times from
each response, and the mean counts (for the source see `edgen.protocols.stage`).

Multi-turn methods take preferences between whole conversations (Shani et al. 2024, MTPO, arXiv 2405.14655). A
loss about one turn, such as DPO's (Rafailov et al. 2023, arXiv 2305.18290), takes such a verdict for a
verdict on that turn. By default the judge compares responses: with equally many calls, that finds the better
turn more often (`python -m bench credit`). Pairs between arms compare policies, so they compare whole
conversations.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from edgen.config.job_parts import PairSettings
from edgen.core.errors import UsageError
from edgen.core.pair import OF_RESPONSES, Compare, Source

Credit = Literal["whole", "response", "rollouts"]
ROLLOUTS = 4  # default number for each response


def apply_credit(
    pairs: PairSettings, by: Source, credit: Credit | None, rollouts: int | None, *, usual: Compare
) -> PairSettings:
    """Return the settings of pairs with the requested credit, including `compare`. `usual`: the default of
    `compare` for a judge. Raises UsageError if the options contradict each other."""
    if by in OF_RESPONSES:
        if credit is not None or rollouts is not None:
            raise UsageError(
                f"--signal {by} is about single responses alone; leave --credit and --rollouts out."
            )
        return msgspec.structs.replace(pairs, compare="response", rollouts=None)
    if rollouts is not None and rollouts < 1:
        raise UsageError("--rollouts: give the number of continuations of each response, 1 or more.")
    if credit in ("whole", "response") and rollouts is not None:
        raise UsageError(f"--rollouts goes with --credit rollouts, not with --credit {credit}.")
    if credit is not None or rollouts is not None:
        k = (rollouts or pairs.rollouts or ROLLOUTS) if credit in (None, "rollouts") else None
        compare: Compare = "response" if credit == "response" else "conversation"
        pairs = msgspec.structs.replace(pairs, compare=compare, rollouts=k)
    if pairs.compare is None:
        of_wholes = by != "oracle" or pairs.rollouts is not None
        pairs = msgspec.structs.replace(pairs, compare="conversation" if of_wholes else usual)
    if credit == "response" and by != "oracle":
        raise UsageError("--credit response: only a judge compares responses; use --signal oracle.")
    if pairs.rollouts is not None and by == "human":
        raise UsageError(
            "people's votes are about whole conversations: --credit whole goes with --signal human."
        )
    if pairs.rollouts is not None and pairs.compare == "response":
        raise UsageError(
            "pairs.rollouts compares whole conversations: leave pairs.compare at conversation, "
            "or give --credit."
        )
    return pairs

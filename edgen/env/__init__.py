"""An environment for online methods: a policy plays one role, simulated or real models play the others.

Episode `index` uses scenario `index` of the job. The job's backends play the other roles, with their secrets;
the policy sees only what its own role may know. The simulator answers the same words in the same way.
`edgen.env.trl`, `.verifiers`, `.skyrl` and `.openenv` adapt the environment to those libraries.

    async with EducationEnv.from_job("jobs/selfplay.yaml") as env:
        messages = await env.reset(0)
        messages, reward, done, info = await env.step("Good morning! What do you know about it already?")
"""

from __future__ import annotations

from edgen.env.conversation import Conversation, Step, SyncConversation, heard
from edgen.env.environment import EducationEnv, SyncEducationEnv
from edgen.env.reward import (
    Ended,
    OracleReward,
    ProbabilityReward,
    Reward,
    Rewarder,
    RubricReward,
    Scored,
)
from edgen.protocols.rubric import Criterion

__all__ = [
    "Conversation", "Criterion", "EducationEnv", "Ended", "OracleReward", "ProbabilityReward", "Reward",
    "Rewarder",
    "RubricReward", "Scored", "Step", "SyncConversation", "SyncEducationEnv", "heard",
]  # fmt: skip

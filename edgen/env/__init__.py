"""An environment for online methods: a policy plays one role, simulated or real models play the others.

The scenarios are those of the job's data: episode `index` is scenario `index`. The other roles, with their secrets,
are played by the job's backends; the policy sees what its own role may know. With the simulator the same words get the
same answers.
`edgen.env.trl`, `.verifiers`, `.skyrl` and `.openenv` are the same environment as those libraries take it.

    async with EducationEnv.from_job("jobs/selfplay.yaml") as env:
        messages = await env.reset(0)
        messages, reward, done, info = await env.step("Good morning! What do you know about it already?")
"""

from __future__ import annotations

from edgen.env.conversation import Conversation, Step, SyncConversation, heard
from edgen.env.environment import EducationEnv, SyncEducationEnv
from edgen.env.reward import Ended, OracleReward, ProbabilityReward, Reward, Rewarder, Scored
from edgen.env.rubric import RubricReward
from edgen.protocols.rubric import Criterion

__all__ = [
    "Conversation", "Criterion", "EducationEnv", "Ended", "OracleReward", "ProbabilityReward", "Reward", "Rewarder",
    "RubricReward", "Scored", "Step", "SyncConversation", "SyncEducationEnv", "heard",
]  # fmt: skip

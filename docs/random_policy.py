"""A policy that knows nothing teaches twenty lessons: how an online method meets the student.

python docs/random_policy.py [JOB]
"""

import asyncio
import random
import sys

from edgen.env import EducationEnv

SENTENCES = [
    "What do you know about it already?",
    "Let me explain it step by step.",
    "Let's try it with our own hands.",
    "Tell me in your own words what we found.",
    "Well done, that was a good question!",
    "We are running out of time. [end of conversation]",
]


async def main(job: str) -> None:
    async with EducationEnv.from_job(job) as env:
        total = 0.0
        for index in range(20):
            rng = random.Random(index)
            observation = await env.reset(index)  # chat messages, as a language model takes them
            done = False
            while not done:
                action = f"{rng.choice(SENTENCES)} This is point {len(observation) // 2}."
                observation, _, done, info = await env.step(action)
            total += info["probability"] or 0.0
            print(
                f"lesson {index:2}: {info['turns']:2} turns, understood with probability {info['probability']}"
            )
        print(f"mean reward {total / 20:.2f}")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "jobs/selfplay.yaml"))

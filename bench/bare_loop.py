"""The baseline of `cost` and `layouts`: the same calls by aiohttp and orjson alone, with nothing stored.

python -m bench.bare_loop URL CALLS IN_FLIGHT
"""

from __future__ import annotations

import asyncio
import sys
import time

import aiohttp
import orjson

from edgen.core.resources import find
from edgen.prompting import load_prompt, scenario_variables
from edgen.space import load_space
from edgen.space.model import list_usual_variables
from edgen.space.sampling import Sampler

HEADERS = {"Content-Type": "application/json"}


def prompts(count: int) -> list[str]:
    """Return the prompts that the job under test sends."""
    space = load_space(find("preference_space", "education_dialogue"))
    prompt = load_prompt(find("prompts", "education_dialogue"), list_usual_variables())
    sampler = Sampler(space, 7, "balanced")
    return [prompt.messages(scenario_variables(sampler.scenario(i)))[0].content for i in range(count)]


async def main(url: str, calls: int, in_flight: int) -> None:
    texts = prompts(calls)
    work = iter(enumerate(texts))
    cpu, wall = time.process_time(), time.perf_counter()
    connector = aiohttp.TCPConnector(limit=in_flight)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def worker() -> None:
            for seed, text in work:
                body = orjson.dumps(
                    {
                        "model": "edgen-simulator",
                        "messages": [{"role": "user", "content": text}],
                        "seed": seed,
                    }
                )
                async with session.post(f"{url}/chat/completions", data=body, headers=HEADERS) as response:
                    assert response.status == 200
                    answer = orjson.loads(await response.read())
                    assert answer["choices"][0]["message"]["content"]

        await asyncio.gather(*(worker() for _ in range(in_flight)))
    # The prompts and imports are not the loop's cost, and the process is not started again for it.
    print(orjson.dumps({"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}).decode())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))

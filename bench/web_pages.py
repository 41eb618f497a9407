"""Pages of `edgen web`: how long each takes, in random order, and the server's memory.

The large index holds small records, written directly by the writer of indexes; a file of one conversation
stands for their data set.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from bench.measure import ROOT, edgen
from edgen.core.values import Scenario, Turn
from edgen.evaluation.sample import Sample
from edgen.store.conversation_index import IndexEntry
from edgen.store.conversation_index.writer import Indexed, write_index

RUN, LARGE = 47_234, 1_000_000
_ASKED = 300  # pages
_WORDS = [
    f"{a}{b}{c}"
    for a in ("ka", "mo", "tri", "su")
    for b in ("len", "bar", "do", "vi")
    for c in ("n", "ta", "s", "")
]


class _Page(NamedTuple):
    kind: str
    path: str


@contextlib.contextmanager
def _server(path: Path, cache: Path) -> Iterator[tuple[int, str, int]]:
    """Serve pages; yield the port, the cookie and the process."""
    command = [sys.executable, "-m", "edgen", "web", str(path), "--no-browser", "--json"]
    environ = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=environ, text=True) as server:
        assert server.stdout is not None
        lines = ""
        while not lines.rstrip().endswith("}"):
            lines += server.stdout.readline()
        link = urlsplit(json.loads(lines)["url"])
        assert link.port is not None
        talk = http.client.HTTPConnection("127.0.0.1", link.port, timeout=600)
        talk.request("GET", f"{link.path}?{link.query}")
        cookie = talk.getresponse().headers["set-cookie"].split(";")[0]
        try:
            yield link.port, cookie, server.pid
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)


def _ask(port: int, cookie: str, path: str) -> tuple[int, str, float]:
    talk = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    began = time.perf_counter()
    talk.request("GET", path, headers={"Cookie": cookie})
    answer = talk.getresponse()
    text = answer.read().decode("utf-8", "replace")
    talk.close()
    return answer.status, text, (time.perf_counter() - began) * 1000


def _cpu(pid: int) -> float:
    """Return the milliseconds that a process's threads ran."""
    ran = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            ran += int((task / "schedstat").read_text("ascii").split()[0])
    return ran / 1e6


def _memory(pid: int, name: str) -> float:
    """Return a figure of a process's memory, in MB (1e6 bytes)."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text("utf-8"))
    return int(found[1]) * 1024 / 1e6 if found else 0.0


def _measure(source: Path, cache: Path, bound: int) -> None:
    """Request pages in random order, and print how long they took."""
    with _server(source, cache) as (port, cookie, pid):
        home = re.search(r'href="(/run/\w+)"', _ask(port, cookie, "/")[1])
        assert home is not None
        path = home[1]
        began = time.perf_counter()
        while _ask(port, cookie, path)[0] == 202:
            time.sleep(0.2)
        print(f"  index: {time.perf_counter() - began:.1f} s", flush=True)
        pages = [*_pages(path, _ask(port, cookie, path)[1], port, cookie)]
        times: dict[str, list[float]] = {}
        ran: dict[str, list[float]] = {}
        for page in pages:
            before = _cpu(pid)
            status, _, took = _ask(port, cookie, page.path)
            ran.setdefault(page.kind, []).append(_cpu(pid) - before)
            assert status == 200, page
            times.setdefault(page.kind, []).append(took)
        for kind, each in sorted(times.items()):
            print(
                f"  {kind}: p50 {statistics.median(each):.0f} ms, p95 {_p95(each):.0f} ms, CPU p95 {_p95(ran[kind]):.0f} ms "
                f"of {len(each)}"
            )
        cpu = [one for each in ran.values() for one in each]
        every = [one for each in times.values() for one in each]
        print(
            f"  all pages: p50 {statistics.median(every):.0f} ms, p95 {_p95(every):.0f} ms (under {bound}), worst "
            f"{max(every):.0f} ms; CPU p50 {statistics.median(cpu):.0f} ms, p95 {_p95(cpu):.0f} ms; memory {_memory(pid, 'VmRSS'):.0f} MB, peak {_memory(pid, 'VmHWM'):.0f} MB (under 300)",
            flush=True,
        )


def _p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))]


def _pages(path: str, listed: str, port: int, cookie: str) -> Iterator[_Page]:
    """Yield pages of every kind, in random order."""
    draw, slug = random.Random(7), path.rpartition("/")[2]
    facets = re.findall(r'<a href="\?(is=[^"]+)"', listed)
    orders = re.findall(r'<option value="(-?[\w.]+)"', listed)
    total = int(re.findall(r'<p role="status">([\d,]+)', listed)[0].replace(",", ""))
    words = re.findall(r"[a-z]{3,}", " ".join(re.findall(r"<bdi>([^<]+)</bdi>", listed)).lower())
    ids = re.findall(rf'href="{path}/([^"?]+)"', listed)
    for _ in range(10):
        ids += re.findall(
            rf'href="{path}/([^"?]+)"', _ask(port, cookie, f"{path}?page={draw.randrange(total // 50)}")[1]
        )
    kinds: Mapping[str, list[str]] = {
        "runs": ["/"],
        "people": [path.replace("/run/", "/people/")],
        "requests": [f"{path.replace('/run/', '/requests/')}/{one}" for one in ids],
        "side by side": [
            f"/beside?left={slug}:{draw.choice(ids)}&right={slug}&right_id={draw.choice(ids)}"
            for _ in range(40)
        ],
        "conversation": [f"{path}/{one}" for one in ids],
        "first page": [path],
        "deep page": [f"{path}?page={draw.randrange(total // 50)}" for _ in range(40)],
        "one value": [f"{path}?{one}" for one in facets],
        "two values": [f"{path}?{draw.choice(facets)}&{draw.choice(facets)}" for _ in range(40)],
        "sorted, deep": [
            f"{path}?order={draw.choice(orders)}&page={draw.randrange(total // 50)}" for _ in range(40)
        ],
        "range and value": [
            f"{path}?least.words={draw.randrange(50)}&{draw.choice(facets)}&order=-words" for _ in range(40)
        ],
        "search": [f"{path}?q={draw.choice(words)}" for _ in range(40)],
        "search, value, order": [
            f"{path}?q={draw.choice(words)}&{draw.choice(facets)}&order={draw.choice(orders)}"
            for _ in range(40)
        ],
    }
    # A data file has no people and no requests.
    there = [kind for kind, paths in kinds.items() if paths and _ask(port, cookie, paths[0])[0] == 200]
    for _ in range(_ASKED):
        kind = draw.choice(there)
        yield _Page(kind, draw.choice(kinds[kind]))


def _small(count: int) -> Iterator[Indexed]:
    draw = random.Random(3)
    for n in range(count):
        values = {
            f"dimension{place}": f"value {draw.randrange(size)}"
            for place, size in enumerate((3, 8, 20, 60, 400, 2))
        }
        texts = [" ".join(draw.choices(_WORDS, k=draw.randrange(3, 12))) for _ in range(4)]
        turns = tuple(
            Turn("User" if place % 2 == 0 else "Assistant", text) for place, text in enumerate(texts)
        )
        size = sum(len(text.split()) for text in texts)
        sample = Sample(
            id=f"small-{n:07d}",
            source="",
            split=None,
            scenario=Scenario(n, values),
            turns=turns,
            entries=len(turns),
        )
        yield Indexed(
            entry=IndexEntry(
                id=sample.id,
                title=values["dimension3"],
                preview=texts[0],
                status="",
                turns=4,
                words=size,
                probability=n % 100 / 100,
            ),
            text="\n".join([*values.values(), *texts]),
            facets={
                **{name: [value] for name, value in values.items()},
                "label": draw.sample(_WORDS[:20], 2),
            },
            numbers={"words": size, "probability": n % 100 / 100, "share": draw.random(), "place": n},
            said="\n".join(texts),
            body=msgspec.json.encode(sample),
        )


def _large(folder: Path, count: int) -> None:
    from edgen.web.sources import Sources

    file = folder / "large.jsonl"
    file.write_text('{"messages": [{"role": "user", "content": "One of a million."}]}\n', "utf-8")
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    (data,) = Sources([file]).data
    began = time.perf_counter()
    path = data.find_index_path()
    for _ in write_index(path, _small(count)):
        pass
    print(
        f"  {count:,} small records are written to an index of {path.stat().st_size / 1e6:,.0f} MB in {time.perf_counter() - began:.0f} s"
    )
    _measure(file, folder / "cache", 300)


def web_pages(folder: Path) -> None:
    """Measure pages of a run of 47,234 conversations: p50, p95, memory.

    With --large also of a million small conversations.
    """
    quickstart = str(ROOT / "jobs" / "quickstart.yaml")
    edgen("generate", quickstart, "-n", str(RUN), "-o", str(folder / "outputs" / "run"))
    _measure(folder / "outputs", folder / "cache", 150)
    if "--large" in sys.argv:
        _large(folder, LARGE)

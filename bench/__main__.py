"""Benchmarks: `python -m bench NAME…` runs some, without a name all; `python -m bench --help` lists them."""

from __future__ import annotations

import datetime
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.annotate import annotate
from bench.closing import IN_FLIGHT as CLOSING_IN_FLIGHT
from bench.closing import OPEN, PERIOD, closing_run
from bench.cluster import main as cluster_main
from bench.credit import credit
from bench.executed import executed
from bench.fleet import fleet
from bench.flips import flips
from bench.flips import main as flips_main
from bench.kills.campaign import kills
from bench.large_data import large_data
from bench.layouts import layouts
from bench.llama_fleet import main as llama_main
from bench.measure import ROOT, edgen, machine, run, simulator
from bench.reading import reading
from bench.real import real
from bench.same_bytes.main import same_bytes
from bench.voting import voting
from bench.web_pages import web_pages

QUICKSTART = str(ROOT / "jobs" / "quickstart.yaml")
CALLS, IN_FLIGHT, ROUNDS = 20_000, 256, 3
ED_SIZE = 47_234
LARGE = "--large"  # sizes that take minutes, too


def cost(folder: Path) -> None:
    """Compare all of `edgen generate` with a bare aiohttp + orjson loop: same calls, same server."""
    cpu, speed = [], []
    with simulator("--latency-ms", "100") as url:
        backend = f"backends.default={{type: openai, model: edgen-simulator, base_url: '{url}', seed: auto}}"
        for number in range(ROUNDS):
            loop = json.loads(
                run(sys.executable, "-m", "bench.bare_loop", url, str(CALLS), str(IN_FLIGHT)).output
            )
            ours = edgen(
                *("generate", QUICKSTART, "-n", str(CALLS), "-o", str(folder / f"cost{number}")),
                *("--set", backend, "--set", f"limits.in_flight={IN_FLIGHT}", "--json"),
            )
            assert json.loads(ours.output)["accepted"] == CALLS
            cpu.append(ours.cpu / loop["cpu"])
            speed.append(loop["wall"] / ours.wall)
            print(
                f"  round {number + 1}: bare loop {loop['cpu'] / CALLS * 1e6:.0f} µs CPU a call, {CALLS / loop['wall']:.0f}/s; "
                f"edgen {ours.cpu / CALLS * 1e6:.0f} µs, {CALLS / ours.wall:.0f}/s"
            )
    print(
        f"  CPU ratio {statistics.median(cpu):.2f} (at most 2.5, aim 2); throughput {statistics.median(speed):.0%} (at least 80%)"
    )


def damages(folder: Path) -> None:  # noqa: ARG001 - it makes its own
    """Damage each file of a run twice and run each command that reads it: a short `python -m bench flips`."""
    flips(2)


def full(folder: Path) -> None:
    """Generate ED's full size with the embedded simulator, end to end."""
    ours = edgen("generate", QUICKSTART, "-n", str(ED_SIZE), "-o", str(folder / "full"), "--json")
    assert json.loads(ours.output)["accepted"] == ED_SIZE
    print(
        f"  {ED_SIZE} conversations: {ours.wall:.1f} s (under 60), CPU {ours.cpu:.1f} s, peak {ours.peak_mb:.0f} MB (under 150)"
    )


def memory(folder: Path) -> None:
    """Measure peak memory as N grows tenfold."""
    peaks = {}
    for count in (10_000, 100_000):
        ours = edgen("generate", QUICKSTART, "-n", str(count), "-o", str(folder / f"memory{count}"), "--json")
        peaks[count] = ours.peak_mb
        print(f"  {count} conversations: peak {ours.peak_mb:.0f} MB, {ours.wall:.1f} s")
    print(f"  100,000 against 10,000: {peaks[100_000] / peaks[10_000] - 1:+.1%} (within 10%)")


def resume(folder: Path) -> None:
    """Start a finished run of 10,000 again."""
    run_folder = str(folder / "resume")
    edgen("generate", QUICKSTART, "-n", "10000", "-o", run_folder, "--json")
    times = []
    for _ in range(ROUNDS):
        again = edgen("generate", QUICKSTART, "-n", "10000", "-o", run_folder, "--json")
        assert json.loads(again.output)["calls"]["made"] == 10_000, "a resumed run asked again"
        times.append(again.wall)
    print(f"  10,000 conversations resumed in {statistics.median(times):.2f} s (under 3)")


def requests(_folder: Path) -> None:
    """Measure the requests per second of `edgen simulator` alone."""
    print("  " + run(sys.executable, "-m", "bench.simulator_rps").output.strip().replace("\n", "\n  "))


def pairs(folder: Path) -> None:
    """Judge 10,200 pairs in both orders with the simulator, then report on and export them."""
    run_folder = str(folder / "pairs")
    edgen("generate", QUICKSTART, "-n", "1700", "--set", "replicates=4", "-o", run_folder)
    judged = edgen("pairs", run_folder, "--by", "oracle", "--json")
    facts = json.loads(judged.output)
    assert facts["judged"] + sum(facts["rejected"].values()) == facts["planned"] == 10_200
    print(f"  judged and labelled: {judged.wall:.1f} s, peak {judged.peak_mb:.0f} MB (under 200)")
    again = edgen("pairs", run_folder, "--by", "oracle", "--json")
    print(f"  started again: {again.wall:.1f} s, peak {again.peak_mb:.0f} MB")
    report = edgen("pairs", run_folder, "--report", "--json")
    print(f"  report: {report.wall:.1f} s, peak {report.peak_mb:.0f} MB")
    export = edgen("export", run_folder, "--to", "trl-conversation", "-o", str(folder / "export"))
    print(f"  export: {export.wall:.1f} s, peak {export.peak_mb:.0f} MB")


def selfplay(folder: Path) -> None:
    """Generate 1,000 scenarios of two agents and three branches each with the simulator."""
    job = str(ROOT / "jobs" / "selfplay.yaml")
    ours = edgen("generate", job, "-n", "1000", "-o", str(folder / "selfplay"), "--json")
    facts = json.loads(ours.output)
    made = facts["calls"]["made"]
    print(
        f"  {facts['accepted']} conversations, {made} calls: {ours.wall:.1f} s, {made / ours.wall:.0f} calls/s, peak {ours.peak_mb:.0f} MB"
    )


def tutoring(folder: Path) -> None:
    """Generate sessions of 20 turns with three tutors by the simulator: 80 calls each, 512 at once."""
    job, peaks = str(ROOT / "jobs" / "tutoring.yaml"), {}
    for count in (200, 600, 2_000):
        ours = edgen("generate", job, "-n", str(count), "-o", str(folder / f"tutoring{count}"), "--json")
        made, peaks[count] = json.loads(ours.output)["calls"]["made"], ours.peak_mb
        print(
            f"  {count:,} sessions, {made:,} calls: {ours.wall:.1f} s, CPU {ours.cpu:.1f} s, {made / ours.wall:,.0f} calls/s, "
            f"peak {ours.peak_mb:.0f} MB"
        )
    print(f"  2,000 (under 120 s) against 600: {peaks[2_000] / peaks[600] - 1:+.1%} memory (within 10%)")


def stats(folder: Path) -> None:
    """Run `edgen stats` over ED's full size and as N grows; with --large, also over 200,000 conversations."""
    run_folder = str(folder / "stats")
    edgen("generate", QUICKSTART, "-n", str(ED_SIZE), "-o", run_folder, "--json")
    for what, path in (("the run", run_folder), ("its files", f"{run_folder}/shards")):
        ours = edgen("stats", path, "--json")
        assert json.loads(ours.output)["overview"]["records"] == ED_SIZE
        print(
            f"  {what}: {ours.wall:.1f} s (under 90), CPU {ours.cpu:.1f} s, peak {ours.peak_mb:.0f} MB (under 250)"
        )
    for count in (20_000, *([200_000] if LARGE in sys.argv else [])):
        run_folder = str(folder / f"stats{count}")
        edgen("generate", QUICKSTART, "-n", str(count), "-o", run_folder, "--json")
        ours = edgen("stats", run_folder, "--json")
        each = ours.cpu / count * 10_000
        print(
            f"  {count:,} conversations: CPU {each:.2f} s per 10,000 (at most 2.5), peak {ours.peak_mb:.0f} MB (at most 250)"
        )


def compare(folder: Path) -> None:
    """Compare two arms of 5,000 conversations."""
    run_folder = str(folder / "compare")
    arms = "arms={plain: {}, refusing: {backends: {default: {seed: 5, faults: 'refusal=0.06'}}}}"
    edgen("generate", QUICKSTART, "-n", "5000", "--set", arms, "-o", run_folder)
    ours = edgen("compare", run_folder, "--json")
    assert json.loads(ours.output)["shared"] == 5_000
    print(
        f"  compared: {ours.wall:.1f} s (under 20, aim 8), CPU {ours.cpu:.1f} s, peak {ours.peak_mb:.0f} MB"
    )


def report(folder: Path) -> None:
    """Run `edgen report` over ED's full size, and print how much of its time is not measuring."""
    run_folder = str(folder / "report")
    edgen("generate", QUICKSTART, "-n", str(ED_SIZE), "-o", run_folder, "--json")
    measured = edgen("stats", run_folder, "--json")
    ours = edgen("report", run_folder)
    size = (folder / "report" / "report.html").stat().st_size
    print(
        f"  {ours.wall:.1f} s (under 90), CPU {ours.cpu:.1f} s, peak {ours.peak_mb:.0f} MB (under 600), {size / 1e6:.2f} MB (under 2)"
    )
    print(
        f"  beyond `edgen stats`: {ours.wall - measured.wall:.1f} s (under 15), {ours.peak_mb - measured.peak_mb:.0f} MB (under 100)"
    )


def closing(folder: Path) -> None:
    """Generate 200 conversations at once for two minutes, with a service that is closed a third of the time.

    The service answers 429 with `Retry-After: 2` for 10 s of every 30 s.
    """
    for latency in (0.1, 0.5, 2.0, 5.0):
        # The share that the open time allows: all 200 at once all the time, or this machine's rate where that
        # is lower.
        rate = CLOSING_IN_FLIGHT / latency
        if latency < 0.5:
            rate = min(rate, closing_run(folder, latency, 30.0, closes=False)[0] / 30)
        possible = rate * 120 * OPEN / PERIOD
        answered, refused = closing_run(folder, latency, 120.0)
        print(
            f"  {latency:g} s a call: {answered} answers, {answered / possible:.0%} of what the open time allows (at least 60%); "
            f"{refused} refusals, {refused / (answered + refused):.2%} of the calls (under 5%)"
        )


def batch(folder: Path) -> None:
    """Generate 10,000 conversations by batch, through the SDK and `edgen simulator`, and the same online."""
    with simulator("--batch-seconds", "0") as url:
        backend = f"backends.default={{type: openai, model: edgen-simulator, base_url: '{url}', seed: auto}}"
        common = (
            "generate",
            QUICKSTART,
            "-n",
            "10000",
            "--set",
            backend,
            "--set",
            "batch.poll=0.2s",
            "--json",
        )
        for via in ("online", "batch"):
            ours = edgen(*common, "-o", str(folder / via), "--via", via)
            assert json.loads(ours.output)["accepted"] == 10_000
            print(f"  {via}: {ours.wall:.1f} s, CPU {ours.cpu:.1f} s, peak {ours.peak_mb:.0f} MB")
    same = all(
        (folder / "online" / "shards" / path.name).read_bytes() == path.read_bytes()
        for path in (folder / "batch" / "shards").iterdir()
    )
    print(f"  the files are the same: {same}")


def select(folder: Path) -> None:
    """Run `edgen select` over ED's full size: an expression alone; with near-duplicates, a cap and a draw."""
    run_folder = str(folder / "select")
    edgen("generate", QUICKSTART, "-n", str(ED_SIZE), "-o", run_folder, "--json")
    plain = ["--where", "turns < 14 and (probability >= .2 or words.Student > 40)"]
    for what, options in (
        ("an expression", plain),
        (
            "near-duplicates too",
            [*plain, "--where", "not near_duplicate", "--cap", "topic=300", "--draw", "10000"],
        ),
    ):
        ours = edgen("select", run_folder, *options, "-o", str(folder / what), "--json")
        chosen = json.loads(ours.output)["selection"]
        assert chosen["accepted"] == ED_SIZE
        print(
            f"  {what}: {chosen['kept']:,} of {ED_SIZE:,} kept: {ours.wall:.1f} s (under 30), CPU {ours.cpu:.1f} s, "
            f"peak {ours.peak_mb:.0f} MB (under 500)"
        )


def merge(folder: Path) -> None:
    """Merge two runs of 50,000 conversations each into one."""
    for piece in ("0:50000", "50000:100000"):
        edgen(
            "generate", QUICKSTART, "-n", "100000", "--range", piece, "-o", str(folder / piece[:2]), "--json"
        )
    ours = edgen("merge", str(folder / "0:"), str(folder / "50"), "-o", str(folder / "whole"), "--json")
    print(f"  {ours.wall:.1f} s, peak {ours.peak_mb:.0f} MB")


def retrieval(folder: Path) -> None:
    """Export ED's full size as response-selection sets.

    Ten candidates by BM25, a hundred for one cut or all cuts, and one pool.
    """
    run_folder = str(folder / "retrieval")
    edgen("generate", QUICKSTART, "-n", str(ED_SIZE), "-o", run_folder, "--json")
    for words in (
        "dstc7",
        "dstc7 --cuts all",
        "dstc7 --negatives bm25",
        "dstc7 --subtask 2",
        "msdialog-responserank",
    ):
        target = folder / "set"
        ours = edgen("export", run_folder, "--to", *words.split(), "-o", str(target), "--json")
        rows = sum(json.loads(ours.output)["rows"].values())
        size = sum(path.stat().st_size for path in target.iterdir()) >> 20
        print(
            f"  {words}: {rows:,} rows, {size:,} MB: {ours.wall:.1f} s (under 300), CPU {ours.cpu:.1f} s, peak "
            f"{ours.peak_mb:.0f} MB (under 1,000)",
            flush=True,
        )
        if words.startswith("dstc7 --cuts all"):
            _score_by_chance(folder, target)
        shutil.rmtree(target)


def _score_by_chance(folder: Path, made: Path) -> None:
    """Rank the test side of a set by chance, and score that ranking against the set."""
    examples, ranking = made / "quickstart_test_subtask_1.json", folder / "chance.json"
    ours = edgen("baseline", str(examples), "-o", str(ranking), "--by", "chance", "--json")
    count = json.loads(ours.output)["examples"]
    print(
        f"  baseline of {count:,} examples: {ours.wall:.1f} s, CPU {ours.cpu:.1f} s, peak {ours.peak_mb:.0f} MB"
    )
    truth = made / "quickstart_responses_subtask_1.tsv"
    ours = edgen("score", str(truth), str(ranking), "--examples", str(examples), "--json")
    print(
        f"  score --examples: {ours.wall:.1f} s, CPU {ours.cpu:.1f} s, peak {ours.peak_mb:.0f} MB", flush=True
    )
    ranking.unlink()


BENCHMARKS: dict[str, Callable[[Path], None]] = {
    "requests": requests,
    "cost": cost,
    "full": full,
    "memory": memory,
    "resume": resume,
    "pairs": pairs,
    "selfplay": selfplay,
    "tutoring": tutoring,
    "stats": stats,
    "compare": compare,
    "report": report,
    "batch": batch,
    "merge": merge,
    "select": select,
    "closing": closing,
    "layouts": layouts,
    "reading": reading,
    "credit": credit,
    "retrieval": retrieval,
    "annotate": annotate,
    "web_pages": web_pages,
    "damages": damages,
    "fleet": fleet,
}


# Each of these reads its own options, which `python -m bench NAME --help` prints, and returns an exit code.
CAMPAIGNS: dict[str, tuple[Callable[[list[str]], int | None], str]] = {
    "same_bytes": (same_bytes, "Compare what two commits write and print, byte for byte."),
    "executed": (executed, "List the files of edgen in which small tasks execute a function."),
    "kills": (kills, "Kill and interrupt commands, or make their disk fail."),
    "flips": (flips_main, "Damage files and ledgers of runs, then read them with each command."),
    "real": (real, "Ask a real model through every protocol and asker."),
    "cluster": (cluster_main, "Measure workers of a Ray cluster, or kill them."),
    "llama_fleet": (llama_main, "Count the prompt tokens that three llama.cpp servers evaluate."),
    "large_data": (
        large_data,
        "Measure `validate`, `compare` and `stats` with data sets of any size and layout.",
    ),
    "voting": (voting, "Let people vote at once, without and with kills of the server."),
}


def help_text() -> str:
    """Return how to call this module, and a line for each benchmark."""
    lines = [
        "usage: python -m bench [NAME…] [--large]",
        "       python -m bench NAME --help, for a name of the second list",
        "",
        "Any of these, by default all; --large adds sizes that take minutes:",
    ]
    lines += [
        f"  {name:<12}{(task.__doc__ or '').partition(chr(10))[0]}" for name, task in BENCHMARKS.items()
    ]
    lines += ["", "One of these, with its own options:"]
    lines += [f"  {name:<12}{sentence}" for name, (_, sentence) in CAMPAIGNS.items()]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    if arguments[:1] and arguments[0] in CAMPAIGNS:
        return min(CAMPAIGNS[arguments[0]][0](arguments[1:]) or 0, 1)
    if {"--help", "-h"} & set(arguments):
        print(help_text())
        return 0
    if unknown := [word for word in arguments if word != LARGE and word not in BENCHMARKS]:
        print(f"no such benchmark: {', '.join(unknown)}\n\n{help_text()}", file=sys.stderr)
        return 2
    print(f"{datetime.datetime.now(tz=datetime.UTC):%Y-%m-%d}, {machine()}")
    for name in [name for name in arguments if name != LARGE] or BENCHMARKS:
        print(f"{name}: {BENCHMARKS[name].__doc__}", flush=True)
        with tempfile.TemporaryDirectory(prefix="edgen-bench-") as folder:
            BENCHMARKS[name](Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

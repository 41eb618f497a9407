"""python -m bench.against CHECKOUT [calls] [rounds]: `edgen generate` here and in the checkout of another
commit.

The two take turns, so that other load on the machine affects both. CPU is user and system time of the
command, without the server. The least of all rounds counts, since other load only adds time.

Where valgrind is installed, the instructions of both are counted, too: those of a start, of each of the first
calls, which learn layouts and compile patterns, and of a further call. They vary by less than 0.5% between
runs, under any load. `import edgen`, `edgen --help`, and `stats` and `export` of a run of 500 are counted as
well.

Both commits run in this environment, with its packages, and with their bytecode cached: the first run of each
is not counted.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from bench.measure import ROOT, Cost, machine, run, simulator
from bench.same_bytes.trees import write_entry_points

_COUNTER = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
_COUNTED = re.compile(r"I +refs: +([\d,]+)")
_CALLS_COUNTED = 500  # under valgrind, which takes 20 times as long
_FURTHER_CALLS = 1000


def use(checkout: Path) -> None:
    """Make commands started from now on run the code of a checkout, with its own entry points."""
    folder = Path(os.environ["PYTHONPYCACHEPREFIX"], "entry_points", *checkout.parts[1:])
    if not folder.exists():
        write_entry_points(checkout, folder)
    os.environ["PYTHONPATH"] = f"{folder}{os.pathsep}{checkout}"


def generate(checkout: Path, folder: Path, calls: int, *more: str, under: tuple[str, ...] = ()) -> Cost:
    """Run the checkout's quickstart job once; return its cost."""
    job = str(checkout / "jobs" / "quickstart.yaml")
    command = (*under, sys.executable, "-m", "edgen", "generate")
    with tempfile.TemporaryDirectory(dir=folder) as out:
        use(checkout)
        return run(*command, job, "-n", str(calls), "-o", f"{out}/run", *more, cwd=checkout)


def count_instructions(checkout: Path, folder: Path, calls: int, *more: str) -> int:
    """Return the instructions of one run, all threads."""
    found = _COUNTED.search(generate(checkout, folder, calls, *more, under=_COUNTER).errors)
    assert found is not None, "valgrind prints the count at the end"
    return int(found[1].replace(",", ""))


def compare(what: str, other: Path, calls: int, rounds: int, *more: str) -> None:
    """Print CPU and memory of both, their ratios, and the counts of instructions."""
    costs: dict[Path, list[Cost]] = {other: [], ROOT: []}
    with tempfile.TemporaryDirectory() as folder:
        for checkout in costs:
            generate(checkout, Path(folder), 1, *more)
        for _ in range(rounds):
            for checkout, found in costs.items():
                found.append(generate(checkout, Path(folder), calls, *more))
        cpu, peak = (
            [min(getattr(c, name) for c in found) for found in costs.values()] for name in ("cpu", "peak_mb")
        )
        print(
            f"{what}, {calls:,} calls: CPU {cpu[0]:.2f} s there, {cpu[1]:.2f} s here, ratio {cpu[1] / cpu[0]:.2f}; "
            f"peak {peak[0]:.0f} MB there, {peak[1]:.0f} MB here, ratio {peak[1] / peak[0]:.2f}",
            flush=True,
        )
        if shutil.which("valgrind"):
            _compare_counts(other, Path(folder), calls, *more)


def _compare_counts(other: Path, folder: Path, calls: int, *more: str) -> None:
    """Print millions of instructions of a start and of a call, and the total for this many calls."""
    one, many, most = (
        [count_instructions(checkout, folder, number, *more) / 1e6 for checkout in (other, ROOT)]
        for number in (1, 1 + _CALLS_COUNTED, 1 + _CALLS_COUNTED + _FURTHER_CALLS)
    )
    each = [(b - a) / _CALLS_COUNTED for a, b in zip(one, many, strict=True)]
    further = [(b - a) / _FURTHER_CALLS for a, b in zip(many, most, strict=True)]
    whole = [a + (calls - 1) * call for a, call in zip(one, each, strict=True)]
    print(
        f"  millions of instructions: a start {one[0]:,.0f} there, {one[1]:,.0f} here, ratio {one[1] / one[0]:.2f}; "
        f"a call {each[0]:.3f} there, {each[1]:.3f} here, ratio {each[1] / each[0]:.2f}; "
        f"after {_CALLS_COUNTED}, {further[0]:.3f} there, {further[1]:.3f} here, "
        f"ratio {further[1] / further[0]:.2f}; "
        f"{calls:,} calls, ratio {whole[1] / whole[0]:.3f}",
        flush=True,
    )


def count_command(checkout: Path, words: tuple[str, ...], written: Path) -> int:
    """Return the instructions of one command with the code of a checkout.

    The command writes to the folder `written` if it writes anything. A first run, whose count is left out,
    caches the bytecode.
    """
    use(checkout)
    run(sys.executable, "-P", *words, cwd=checkout)
    shutil.rmtree(written, ignore_errors=True)
    found = _COUNTED.search(run(*_COUNTER, sys.executable, "-P", *words, cwd=checkout).errors)
    assert found is not None, "valgrind prints the count at the end"
    return int(found[1].replace(",", ""))


def compare_reading(other: Path) -> None:
    """Print millions of instructions of `import edgen`, `edgen --help`, and of stats and export of a run."""
    with tempfile.TemporaryDirectory() as folder:
        made = f"{folder}/run"
        job = str(other / "jobs" / "quickstart.yaml")
        use(other)
        run(sys.executable, "-P", "-m", "edgen", "generate", job, "-n", str(_CALLS_COUNTED), "-o", made)
        commands = {
            "import edgen": ("-c", "import edgen"),
            "edgen --help": ("-m", "edgen", "--help"),
            "stats": ("-m", "edgen", "stats", made, "--json"),
            "export": ("-m", "edgen", "export", made, "--to", "sft", "-o", f"{folder}/PLACE"),
        }
        for what, words in commands.items():
            counts = []
            for checkout in (other, ROOT):
                target = Path(tempfile.mkdtemp(dir=folder))
                named = tuple(word.replace(f"{folder}/PLACE", str(target)) for word in words)
                counts.append(count_command(checkout, named, target) / 1e6)
            print(
                f"  {what}: millions of instructions {counts[0]:,.0f} there, {counts[1]:,.0f} here, "
                f"ratio {counts[1] / counts[0]:.3f}",
                flush=True,
            )


def main() -> None:
    other = Path(sys.argv[1]).resolve()
    calls = int(sys.argv[2]) if len(sys.argv) > 2 else 5000
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    print(f"{machine()}; {rounds} rounds, {other.name} against {ROOT.name}")
    with tempfile.TemporaryDirectory() as cache:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ.update(PYTHONPYCACHEPREFIX=cache, PYTHONHASHSEED="0")
        compare("embedded simulator", other, calls, rounds)
        with simulator() as url:
            backend = (
                f"backends.default={{type: openai, model: edgen-simulator, base_url: '{url}', seed: auto}}"
            )
            compare("served simulator", other, calls, rounds, "--set", backend)
        if shutil.which("valgrind"):
            compare_reading(other)


if __name__ == "__main__":
    main()

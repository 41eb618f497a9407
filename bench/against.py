"""python -m bench.against CHECKOUT [calls] [rounds]: `edgen generate` here and in the checkout of another commit.

Where valgrind is installed, `import edgen`, `edgen --help`, and `stats` and `export` of a run of 500 are counted as well.

The two take turns, so that what else the machine does meets both. CPU is user and system time of the command and not of
the server; of the rounds the least counts, as nothing makes a command quicker than it is. Where valgrind is installed,
the instructions of both are counted, too: how many of them a start takes and how many a call, which hardly changes
from run to run (within 0.5%), whatever else the machine does. Both run in this environment, with the packages that it
has, and with their bytecode cached: the first run of each is not counted.
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


def use(checkout: Path) -> None:
    """Have commands that are started from now on run the code of a checkout, with its own entry points."""
    folder = Path(os.environ["PYTHONPYCACHEPREFIX"], "entry_points", *checkout.parts[1:])
    if not folder.exists():
        write_entry_points(checkout, folder)
    os.environ["PYTHONPATH"] = f"{folder}{os.pathsep}{checkout}"


def generate(checkout: Path, folder: Path, calls: int, *more: str, under: tuple[str, ...] = ()) -> Cost:
    """One run of the checkout's quickstart job."""
    job = str(checkout / "jobs" / "quickstart.yaml")
    command = (*under, sys.executable, "-m", "edgen", "generate")
    with tempfile.TemporaryDirectory(dir=folder) as out:
        use(checkout)
        return run(*command, job, "-n", str(calls), "-o", f"{out}/run", *more, cwd=checkout)


def count_instructions(checkout: Path, folder: Path, calls: int, *more: str) -> int:
    """The instructions of one run, all threads."""
    found = _COUNTED.search(generate(checkout, folder, calls, *more, under=_COUNTER).errors)
    assert found is not None, "valgrind tells the count at the end"
    return int(found[1].replace(",", ""))


def compare(what: str, other: Path, calls: int, rounds: int, *more: str) -> None:
    """Print CPU and memory of both, their ratios, and what is counted."""
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
    """Print millions of instructions of a start and of a call, and what they come to for so many calls."""
    one, many = (
        [count_instructions(checkout, folder, number, *more) / 1e6 for checkout in (other, ROOT)]
        for number in (1, 1 + _CALLS_COUNTED)
    )
    each = [(b - a) / _CALLS_COUNTED for a, b in zip(one, many, strict=True)]
    whole = [a + (calls - 1) * call for a, call in zip(one, each, strict=True)]
    print(
        f"  millions of instructions: a start {one[0]:,.0f} there, {one[1]:,.0f} here, ratio {one[1] / one[0]:.2f}; "
        f"a call {each[0]:.3f} there, {each[1]:.3f} here, ratio {each[1] / each[0]:.2f}; "
        f"{calls:,} calls, ratio {whole[1] / whole[0]:.3f}",
        flush=True,
    )


def count_command(checkout: Path, words: tuple[str, ...], written: Path) -> int:
    """The instructions of one command with the code of a checkout, which writes to the folder `written` if it does.

    A first run, whose count is left out, caches the bytecode.
    """
    use(checkout)
    run(sys.executable, "-P", *words, cwd=checkout)
    shutil.rmtree(written, ignore_errors=True)
    found = _COUNTED.search(run(*_COUNTER, sys.executable, "-P", *words, cwd=checkout).errors)
    assert found is not None, "valgrind prints the count at the end"
    return int(found[1].replace(",", ""))


def compare_reading(other: Path) -> None:
    """Print millions of instructions of `import edgen`, `edgen --help`, and of stats and export over one run."""
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

"""python -m bench same_bytes [--before COMMIT] [--only CHAIN…] [--keep DIR]

Run the same commands with the code of a commit (HEAD without --before) and with the working tree, and compare
their output byte for byte: files of runs, exports, pages, stdout, stderr and exit codes. `plan.py` has the
commands, in chains; --only runs some of them. The commit's run folders are then opened with the working tree,
which must make no model call again. Values that differ from run to run are replaced first
(`differences.VOLATILE`). Ledgers are not compared; opening them tests them.

Each difference is printed with its first lines, and the exit code is 1 if there is any. Differences of
`--help` are printed and do not count. The commit's output is kept in the system's folder for temporary files,
by commit and plan. --keep DIR keeps the working tree's output.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import platform
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bench.measure import ROOT
from bench.same_bytes import trees
from bench.same_bytes.differences import Difference, compare_folders, find_files
from bench.same_bytes.plan import CHAINS, HELP, Chain, make_chains, read_jobs

_WORKER = Path(__file__).with_name("worker.py")
_PLACES = "places.json"  # in the folder of a chain: the paths that its outputs may name


class Code(NamedTuple):
    """The code under test: a tree, and the folder of its entry points."""

    tree: Path
    entry_points: Path


def run_chains(code: Code, chains: list[Chain], folder: Path, side_by_side: int) -> None:
    """Run chains in folders of their names below `folder`: their steps, then the repeated steps."""
    jobs = read_jobs(code.tree)
    planned = []
    for chain in chains:
        (folder / chain.name).mkdir(parents=True)
        planned.append(
            _planned(folder / chain.name, (*chain.steps, *chain.again), {**jobs, **chain.files}, "said")
        )
        _note_places(folder / chain.name, folder / chain.name, code)
    _run_worker(code, planned, folder, side_by_side)


def open_chains(code: Code, chains: list[Chain], theirs: Path, folder: Path, side_by_side: int) -> None:
    """Copy folders that other code wrote, and repeat that code's last steps in each."""
    planned = []
    for chain in chains:
        copy = folder / chain.name
        shutil.copytree(theirs / chain.name, copy)
        shutil.rmtree(copy / "opened", ignore_errors=True)
        planned.append(_planned(copy, chain.again, {}, "said-again"))
    _run_worker(code, planned, folder, side_by_side)


def _planned(folder: Path, steps: tuple[str, ...], files: dict[str, str], said: str) -> dict[str, object]:
    return {
        "folder": str(folder),
        "files": files,
        "steps": [shlex.split(step) for step in steps],
        "said": said,
    }


def _run_worker(code: Code, planned: list[dict[str, object]], folder: Path, side_by_side: int) -> None:
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"side_by_side": side_by_side, "chains": planned}))
    ended = trees.python(str(_WORKER), str(plan), tree=code.tree, entry_points=code.entry_points, cwd=folder)
    plan.unlink()
    if ended.returncode:
        raise SystemExit(f"bench: the commands could not be run with the code in {code.tree}; see above.")


def _note_places(chain: Path, folder: Path, code: Code) -> None:
    places = sorted({str(folder), str(code.tree), str(code.entry_points)}, key=len, reverse=True)
    (chain / _PLACES).write_text(json.dumps(places))


def _read_places(chain: Path) -> list[bytes]:
    return [place.encode() for place in json.loads((chain / _PLACES).read_text())]


@contextlib.contextmanager
def prepare_before(commit: str, chains: list[Chain]) -> Iterator[tuple[Path, Code, list[Chain]]]:
    """Yield the kept folder of a commit, its code, and the chains that it does not hold yet."""
    plan = hashlib.sha256(_WORKER.read_bytes() + platform.python_version().encode())
    plan.update(repr([make() for make in CHAINS.values()]).encode())
    kept = Path(
        tempfile.gettempdir(), f"edgen-same-bytes-{os.getuid()}", f"{commit[:12]}-{plan.hexdigest()[:12]}"
    )
    kept.mkdir(parents=True, exist_ok=True)
    code = Code(kept / "tree", kept / "entry_points")
    if not code.tree.exists():
        with tempfile.TemporaryDirectory(dir=kept) as folder:
            trees.extract(commit, Path(folder, "tree"))
            trees.write_entry_points(Path(folder, "tree"), code.entry_points)
            Path(folder, "tree").rename(code.tree)
    yield kept, code, [chain for chain in chains if not (kept / chain.name).exists()]


def make_both(commit: str, chains: list[Chain], folder: Path) -> tuple[Path, Path]:
    """Run the chains with both codes; return the folders of the commit and of the working tree."""
    now = Code(ROOT, folder / "entry_points")
    trees.write_entry_points(ROOT, now.entry_points)
    cores = os.cpu_count() or 2
    with prepare_before(commit, chains) as (kept, before, missing), ThreadPoolExecutor() as pool:
        share = max(cores // 2, 1) if missing else cores
        making = Path(tempfile.mkdtemp(prefix="making-", dir=kept))
        runs = [pool.submit(run_chains, now, chains, folder / "now", share)]
        if missing:
            runs.append(pool.submit(run_chains, before, missing, making, share))
        for run in runs:
            run.result()
        for chain in missing:
            (making / chain.name).rename(kept / chain.name)
        shutil.rmtree(making)
    readable = [chain for chain in chains if chain.again]
    (folder / "opened").mkdir()
    open_chains(now, readable, kept, folder / "opened", cores)
    return kept, folder


def find_differences(chains: list[Chain], before: Path, folder: Path) -> Iterator[Difference]:
    """Yield the differences between the commit's folders and the working tree's, and in the opened copies."""
    for chain in chains:
        old, new, opened = before / chain.name, folder / "now" / chain.name, folder / "opened" / chain.name
        places = (_read_places(old), _read_places(new))
        yield from compare_folders(old, new, places, f"{chain.name}/")
        if opened.exists():
            yield from _compare_opened(chain, old, opened, places)


def _compare_opened(
    chain: Chain, old: Path, opened: Path, places: tuple[list[bytes], list[bytes]]
) -> Iterator[Difference]:
    """Yield the differences in a commit's folder after the working tree opened it, and in the outputs."""
    first = len(chain.steps) + 1
    for number in range(1, len(chain.again) + 1):
        said = opened / "said-again" / f"{number:03}.txt"
        said.rename(opened / "said" / f"{first + number - 1:03}.txt")
    (opened / "said-again").rmdir()
    here = [str(opened).encode(), *places[1]]
    yield from compare_folders(old, opened, (places[0], [*here, *places[0]]), f"opened: {chain.name}/")


def _command(folder: Path, path: str) -> str:
    """Return the command of a file of `said`, for a reader."""
    if "/said/" not in path:
        return ""
    file = folder / path.removeprefix("opened: ")
    return file.read_text(encoding="utf-8").split("\n", 1)[0] if file.exists() else ""


def same_bytes(arguments: list[str]) -> int:
    """Run the comparison; return the exit code."""
    options = _parse(arguments)
    chains, started = make_chains(options.only), time.perf_counter()
    commit = trees.find_commit(options.before)
    with contextlib.ExitStack() as stack:
        if options.keep:
            folder = options.keep.resolve()
            folder.mkdir(parents=True)  # refuses one that exists
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="edgen-same-bytes-")))
        before, now = make_both(commit, chains, folder)
        found = list(find_differences(chains, before, now))
        for difference in found:
            print(f"\n{difference.path}  {_command(before, difference.path)}".rstrip())
            print("\n".join(f"  {line}" for line in difference.lines))
        counted = [one for one in found if not one.path.startswith(f"{HELP}/")]
        files = sum(len(find_files(folder / "now" / chain.name)) for chain in chains)
        steps = sum(len(chain.steps) + len(chain.again) for chain in chains)
    print(
        f"\n{steps} commands, {files} files, against {commit[:12]}: {len(counted)} differ"
        f"{f', and {len(found) - len(counted)} texts of --help' if len(found) > len(counted) else ''}; "
        f"{time.perf_counter() - started:.0f} s. The commit's files are in {before}."
    )
    return 1 if counted else 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench same_bytes", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--before", default="HEAD", metavar="COMMIT")
    parser.add_argument("--only", nargs="+", choices=[*CHAINS], default=[], metavar="CHAIN")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(same_bytes(sys.argv[1:]))

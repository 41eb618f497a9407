"""python -m bench large_data LAYOUT… --records FOLDER [--mb 2000] [--commands validate compare stats] [--run
RUN]

Memory of `validate`, `compare` and `stats` with a data set of 2 GB in a published layout. FOLDER holds a file
LAYOUT.json of real records for each layout (a folder LAYOUT of files for `crwiz`); they are repeated with new
ids until the file is large enough. Chat layouts (`sharegpt`, `messages-json`, `messages-jsonl`,
`messages-parquet`) take their texts from `education.json`. Each command runs alone in a process of its own;
its resident memory is looked at all the time and printed at 10%, 50% and 100% of its time, with the largest
value. The data set is deleted afterwards.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.measure import ROOT

Record = dict[str, Any]
_LOOKS_EACH = 0.2  # seconds
_WHOLE = 2_000  # MB


def _education(folder: Path) -> list[Record]:
    found: list[Record] = json.loads((folder / "education.json").read_text("utf-8"))
    return found


def _by_id(name: str, within: str = "") -> Callable[[Path], list[Record]]:
    def records(folder: Path) -> list[Record]:
        found = json.loads((folder / f"{name}.json").read_text("utf-8"))
        return list((found[within] if within else found).values())

    return records


def _logs(folder: Path) -> list[Record]:
    return [json.loads(path.read_text("utf-8")) for path in sorted((folder / "crwiz").glob("*.json"))]


_CHAT_ROLES = {"Teacher": "assistant", "Student": "user"}


def _messages(folder: Path) -> list[Record]:
    return [
        {"messages": [{"role": _CHAT_ROLES[turn["role"]], "content": turn["text"]} for turn in one["conversation"]]}
        for one in _education(folder)
    ]  # fmt: skip


def _sharegpt(folder: Path) -> list[Record]:
    names = {"assistant": "gpt", "user": "human"}
    return [
        {"conversations": [{"from": names[one["role"]], "value": one["content"]} for one in record["messages"]]}
        for record in _messages(folder)
    ]  # fmt: skip


class Layout(NamedTuple):
    """A layout: its real records, how a record gets a new id, and how records are written."""

    records: Callable[[Path], list[Record]]
    renamed: Callable[[Record, int], Record]
    write: Callable[[Path, Iterator[Record], int], int]
    ending: str


def _with(key: str) -> Callable[[Record, int], Record]:
    return lambda record, number: {**record, key: f"{key}-{number:09}"}


def _keyed(record: Record, number: int) -> Record:  # noqa: ARG001 - the file's keys are the ids
    return record


def _write_lines(path: Path, records: Iterator[Record], size: int, *, within: str = "", by_id: bool = False, plain: bool = False) -> int:  # fmt: skip
    """Write records until the file has `size` bytes; return how many it holds."""
    opening, closing, between = ("{", "}", ",\n") if by_id else ("", "", "\n") if plain else ("[", "]", ",\n")
    if within:
        opening, closing = f'{{"{within}": {{', "}}"
    written = 0
    with path.open("w", encoding="utf-8") as file:
        file.write(opening)
        for number, record in enumerate(records):
            text = json.dumps(record, ensure_ascii=False)
            text = f"{between if number else ''}" + (f'"{number}": {text}' if by_id or within else text)
            file.write(text)
            written += len(text.encode())
            if written >= size:
                break
        file.write(closing + "\n")
    return number + 1


def _write_folder(path: Path, records: Iterator[Record], size: int) -> int:
    path.mkdir()
    written = number = 0
    while written < size:
        text = json.dumps(next(records))
        (path / f"{number:07}.json").write_text(text, encoding="utf-8")
        written, number = written + len(text), number + 1
    return number


def _write_parquet(path: Path, records: Iterator[Record], size: int) -> int:
    """Write until the texts have `size` bytes; the file is smaller, since it is compressed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    written = number = 0
    writer: Any = None
    while written < size:
        rows = list(itertools.islice(records, 2_000))
        table = pa.Table.from_pylist(rows)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="none", use_dictionary=False)
        writer.write_table(table)
        written, number = written + table.nbytes, number + len(rows)
    writer.close()
    return number


def _lines(**how: Any) -> Callable[[Path, Iterator[Record], int], int]:
    return lambda path, records, size: _write_lines(path, records, size, **how)


LAYOUTS = {
    "msdialog-complete": Layout(_by_id("msdialog-complete"), _keyed, _lines(by_id=True), ".json"),
    "msdialog-intent": Layout(_by_id("msdialog-intent"), _keyed, _lines(by_id=True), ".json"),
    "cima": Layout(_by_id("cima", "prepDataset"), _keyed, _lines(within="prepDataset"), ".json"),
    "crwiz": Layout(_logs, _with("name"), _write_folder, ""),
    "education": Layout(_education, _with("id"), _lines(), ".json"),
    "sharegpt": Layout(_sharegpt, _with("id"), _lines(), ".json"),
    "messages-json": Layout(_messages, _with("id"), _lines(), ".json"),
    "messages-jsonl": Layout(_messages, _with("id"), _lines(plain=True), ".jsonl"),
    "messages-parquet": Layout(_messages, _with("id"), _write_parquet, ".parquet"),
}  # fmt: skip


class Memory(NamedTuple):
    """Memory of a process at shares of its time and its largest value, in MB.

    Also seconds of wall time and CPU.
    """

    at: tuple[float, ...]
    most: float
    wall: float
    cpu: float
    exit_code: int
    last_line: str


def watch(*command: str, shares: tuple[float, ...] = (0.1, 0.5, 1.0)) -> Memory:
    """Run a command to its end and sample its memory, without that of its child processes."""
    started, seen = time.perf_counter(), []
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            seen.append((time.perf_counter() - started, _resident(process.pid)))
            time.sleep(_LOOKS_EACH)
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        output.seek(0)
        lines = output.read().decode("utf-8", "replace").strip().splitlines()
    wall = time.perf_counter() - started
    at = tuple(max((mb for when, mb in seen if when <= share * wall), default=0.0) for share in shares)
    usage = ended[2]
    most = usage.ru_maxrss * 1024 / 1e6
    return Memory(
        at, most, wall, usage.ru_utime + usage.ru_stime, process.returncode, lines[-1] if lines else ""
    )


def _resident(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next(
        (int(line.split()[1]) * 1024 / 1e6 for line in status.splitlines() if line.startswith("VmRSS")), 0.0
    )


def large_data(arguments: list[str]) -> int:
    """Write each data set, measure the commands on it, delete it; return 0."""
    options = _parse(arguments)
    for name in options.layout:
        layout = LAYOUTS[name]
        folder = Path(tempfile.mkdtemp(prefix="edgen-large-"))
        try:
            path = folder / f"{name}{layout.ending}"
            repeated = itertools.cycle(layout.records(options.records))
            count = layout.write(
                path, (layout.renamed(one, i) for i, one in enumerate(repeated)), int(options.mb * 1e6)
            )
            print(f"{name}: {count:,} records, {options.mb:,} MB", flush=True)
            for command in options.commands:
                more = [str(options.run)] if command == "compare" else []
                found = watch(sys.executable, "-m", "edgen", command, str(path), *more)
                at = ", ".join(f"{mb:.0f}" for mb in found.at)
                print(
                    f"  {command}: {at} MB until 10%, 50%, 100% of its time, most {found.most:.0f} MB; {found.cpu:.0f} s of CPU, "
                    f"{found.wall:.0f} s; exit {found.exit_code}: {found.last_line[:120]}",
                    flush=True,
                )  # fmt: skip
        finally:
            shutil.rmtree(folder)
    return 0


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench large_data", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("layout", nargs="+", choices=[*LAYOUTS])
    parser.add_argument("--records", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--mb", type=int, default=_WHOLE)
    parser.add_argument(
        "--commands",
        nargs="+",
        choices=["validate", "compare", "stats"],
        default=["validate", "compare", "stats"],
    )
    parser.add_argument("--run", type=Path, metavar="RUN", help="the other side of compare")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(large_data(sys.argv[1:]))

"""One command run on a run, in a fork: its output, written and opened files, and model calls."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import pkgutil
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.flips.runs import Reading

_FOLDERS = (
    "annotation",
    "api",
    "cli",
    "evaluation",
    "export",
    "preferences",
    "protocols",
    "report",
    "selection",
)
_OPENING = frozenset({"open", "sqlite3.connect", "os.rename", "os.link", "os.listdir", "os.scandir"})
_BESIDE_LEDGER = ("-wal", "-shm", "-acked")
_VOLATILE = (".db", ".lock", *(f".db{end}" for end in _BESIDE_LEDGER))


class Result(NamedTuple):
    """The result of a command.

    Its exit code, its output as a whole and on stdout and stderr alone, the digests of all stable files in
    the run and of the files that it wrote, the replies that it stored, and the files of the run that it
    opened.
    """

    code: int
    output: str
    stdout: str
    stderr: str
    files: dict[str, str]
    calls: int
    opened: frozenset[str]


def import_all() -> None:
    """Import what commands use, so that forks do not."""
    import edgen

    for module in pkgutil.walk_packages(edgen.__path__, "edgen."):
        if module.name.split(".")[1] in _FOLDERS:
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)


def read(reading: Reading, run: Path, out: Path, folder: Path) -> Result:
    """Run a command on a run."""
    before = count_replies(run)
    out.mkdir()
    code, stdout, stderr, opened = _edgen(reading.arguments(run, out, folder), out)
    files = {**_digests(run, "run/"), **_digests(out, "out/")}
    inside = f"{run}/"
    names = frozenset(path.removeprefix(inside) for path in opened if path.startswith(inside))
    place = str(run.parent)
    stdout, stderr = stdout.replace(place, ""), stderr.replace(place, "")
    return Result(code, stdout + stderr, stdout, stderr, files, count_replies(run) - before, names)


def must(*words: str | Path) -> None:
    """Run a command, and end the campaign if it fails.

    Making fewer conversations than planned, or being stopped, is no failure.
    """
    arguments = [str(word) for word in words]
    with tempfile.TemporaryDirectory() as folder:
        code, stdout, stderr, _ = _edgen(arguments, Path(folder))
    if code not in (0, 3, 4):
        raise SystemExit(f"edgen {' '.join(arguments)}: {code}\n{stdout}{stderr}")


def _edgen(arguments: Sequence[str], folder: Path) -> tuple[int, str, str, frozenset[str]]:
    """Run `edgen` in a fork; return its exit code, stdout, stderr, and the paths that it opened."""
    from edgen.__main__ import main

    files = folder / "stdout", folder / "stderr", folder / "opened", folder / "modules"
    if (process := os.fork()) == 0:
        code = 1
        try:
            for number, path in enumerate(files[:2], 1):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
            _note_opened(files[2])
            sys.argv = ["edgen", *arguments]
            try:
                main()
                code = 0
            except SystemExit as ended:
                code = int(ended.code or 0)
            sys.stdout.flush()
            sys.stderr.flush()
            files[3].write_text("\n".join(sys.modules))
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    stdout, stderr, opened, modules = (
        path.read_text(errors="replace") if path.exists() else "" for path in files
    )
    for path in files:
        path.unlink(missing_ok=True)
    for name in modules.splitlines():  # so that the next fork has them
        if name not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    return code, stdout, stderr, frozenset(opened.splitlines())


def _note_opened(target: Path) -> None:
    """Note the path of each file that this process opens, renames or links."""
    noted = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def hear(event: str, about: tuple[Any, ...]) -> None:
        if event in _OPENING and isinstance(about[0], str | os.PathLike):
            path = os.fsdecode(about[0]).removeprefix("file://").partition("?")[0]
            os.write(noted, f"{path}\n".encode(errors="replace"))

    sys.addaudithook(hear)


def count_replies(run: Path) -> int:
    """Return how many replies the ledgers of a run hold."""
    total = 0
    for path in run.rglob("*.db"):
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as connection:
            total += connection.execute("SELECT COUNT(*) FROM replies").fetchone()[0]
    return total


def _digests(folder: Path, prefix: str) -> dict[str, str]:
    place = str(folder.parent).encode()
    return {
        prefix + path.relative_to(folder).as_posix(): hashlib.sha256(
            path.read_bytes().replace(place, b"")
        ).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(_VOLATILE)
    }


def dump(path: Path) -> list[str] | None:
    """Return the content of a ledger as SQL, or None for one that SQLite cannot read."""
    try:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                return None
            return list(connection.iterdump())
    except (sqlite3.Error, UnicodeDecodeError):
        return None

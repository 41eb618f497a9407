"""python -P worker.py PLAN: run chains of edgen commands, each command in a fork of this process.

This file uses the standard library and the `edgen` on PYTHONPATH alone, so it runs any commit. PLAN is a JSON
file: `side_by_side` (chains at once) and `chains`, each with `folder`, `files` (path to text) and `steps`
(lists of words). Each step's command, exit code, stdout and stderr go to `said/NNN.txt` in the folder of its
chain. The word `*` in a step, as in a shell, stands for any characters of a path. `cpu.tsv` in the folder has
seconds of CPU of each step.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import re
import runpy
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, NoReturn

SECONDS = 240  # after which a command is killed
SLOW_TO_IMPORT = (
    "openai", "google.genai", "google.generativeai", "anthropic", "litellm", "torch", "datasets", "pandas", "polars",
    "transformers", "httpx", "pyarrow",
)  # fmt: skip
_COMMAND = re.compile(r"^  ([a-z][a-z-]*)(?:  |$)")
_HEADING = re.compile(r"^(\w.*):$")


def import_edgen() -> None:
    """Import all of edgen except modules that need an SDK, so that forks import little."""
    import edgen

    for name in SLOW_TO_IMPORT:
        sys.modules[name] = None  # type: ignore[assignment]  # an import of it fails
    for module in pkgutil.walk_packages(edgen.__path__, "edgen.", onerror=lambda _name: None):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(Exception):
                importlib.import_module(module.name)
    for name in SLOW_TO_IMPORT:
        sys.modules.pop(name, None)
    for name in ("matplotlib.figure", "matplotlib.backends.backend_svg", "bm25s", "jsonschema"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with contextlib.suppress(Exception):  # Typer builds its tree of commands each time, which takes 50 ms
        _keep_commands()
    gc.collect()
    gc.freeze()


def _keep_commands() -> None:
    import typer.main

    from edgen.cli.app import app

    typer.main.get_command = functools.cache(typer.main.get_command)
    command: Any = typer.main.get_command(app)
    [*command.commands.values()]  # each is built at its first look-up


def become(arguments: list[str], out: Path) -> NoReturn:
    """Run edgen with the arguments in this process, and end it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.alarm(SECONDS)
    for number, path in ((0, Path(os.devnull)), (1, out.with_suffix(".out")), (2, out.with_suffix(".err"))):
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - by number
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = ["edgen", *arguments]
    code: object = 0
    try:
        runpy.run_module("edgen", run_name="__main__")
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - as Python's own end shows it
        code = 1
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def run_step(words: list[str], out: Path) -> str:
    """Run one command to its end; return its stdout, and write the record of it to `out`."""
    arguments = [path for word in words for path in expand(word)]
    if not (pid := os.fork()):
        become(arguments, out)
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    with out.parent.with_name("cpu.tsv").open("a", encoding="utf-8") as file:
        file.write(f"{usage.ru_utime + usage.ru_stime:.3f}\t{' '.join(words)}\n")
    parts = [f"$ edgen {' '.join(words)}\nexit code {code}\n"]
    for name in ("out", "err"):
        printed = out.with_suffix(f".{name}")
        parts.append(f"--- std{name}\n{printed.read_text(encoding='utf-8', errors='replace')}")
        printed.unlink()
    out.write_text("".join(parts), encoding="utf-8")
    return parts[1]


def expand(word: str) -> list[str]:
    """Return the paths that a word with a `*` matches, or the word."""
    simple = "*" in word and " " not in word and "/" in word
    return sorted(map(str, Path().glob(word))) or [word] if simple else [word]


def run_help(words: list[str], said: Path) -> None:
    """Write the help of a command and of each command that it lists."""
    name = "-".join(["edgen", *words])
    text = run_step([*words, "--help"], said / f"{name}.txt")
    heading = ""
    for line in text.splitlines():
        if found := _HEADING.match(line):
            heading = found[1]
        elif (found := _COMMAND.match(line)) and heading not in ("Options", "Arguments"):
            run_help([*words, found[1]], said)


def run_chain(chain: dict[str, Any]) -> None:
    """Run the steps of a chain one after another in its folder."""
    os.chdir(chain["folder"])
    for path, text in chain["files"].items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
    said = Path(chain["said"]).resolve()
    said.mkdir(parents=True)
    for number, words in enumerate(chain["steps"], 1):
        if words == ["--help", "*"]:
            run_help([], said)
        else:
            run_step(words, said / f"{number:03}.txt")


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    import_edgen()
    running: set[int] = set()
    failed = 0
    for chain in plan["chains"]:
        if len(running) == plan["side_by_side"]:
            failed |= _wait(running)
        if not (pid := os.fork()):
            try:
                run_chain(chain)
                os._exit(0)
            except BaseException:  # noqa: BLE001 - a fork must not return
                traceback.print_exc()
                os._exit(1)
        running.add(pid)
    while running:
        failed |= _wait(running)
    sys.exit(failed)


def _wait(running: set[int]) -> int:
    pid, status = os.wait()
    running.remove(pid)
    return int(os.waitstatus_to_exitcode(status) != 0)


if __name__ == "__main__":
    main()

"""python -m bench executed [--json] [--files]: the files of edgen in which a function runs, for four small
tasks.

A file counts if at least one function of it is called, not merely imported, while `edgen` runs one command in
a process of its own. Four rules make the figure one of the code that a reader has to follow:

- The command line is part of it: the call begins after `import edgen`, and what the command imports comes
  later.
- Calls made by an import (decorators, tables built by functions) do not count.
- A function's body counts; bodies of modules and classes do not. Lambdas and comprehensions are functions.
- Files of `simulator/` do not count, as the simulator stands in for a model.

The tasks: `generate -n 1` of jobs/quickstart.yaml and of jobs/tutoring.yaml; of a run of one conversation,
`export --to sft` and `stats --only lengths`. --files lists the files of each task.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType

from bench.measure import ROOT, run

_EDGEN = f"{ROOT / 'edgen'}/"
_NOT_COUNTED = "simulator/"
_IMPORTS = "<frozen importlib"


def find_job(name: str) -> str:
    """Return the path of a shipped job, in any folder below jobs/."""
    (path,) = (ROOT / "jobs").rglob(f"{name}.yaml")
    return str(path)


def list_tasks(folder: Path) -> dict[str, tuple[str, ...]]:
    """Return the command of each task; the last two read what the first writes."""
    first = str(folder / "oneshot")
    generated = {
        name: ("generate", find_job(job), "-n", "1", "-o", str(folder / name), "--json")
        for name, job in (("oneshot", "quickstart"), ("tutoring", "tutoring"))
    }
    return {
        **generated,
        "export": ("export", first, "--to", "sft", "-o", str(folder / "exported"), "--json"),
        "measure": ("stats", first, "--only", "lengths", "--json"),
    }


def record_files(arguments: list[str]) -> list[str]:
    """Run `edgen` with the arguments in this process; return the files in which a function was called."""
    import edgen  # noqa: F401
    from edgen.__main__ import main

    seen: dict[object, bool] = {}
    files: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call" or seen.get(code):
            return
        is_function = bool(code.co_flags & inspect.CO_OPTIMIZED)
        if not is_function or not code.co_filename.startswith(_EDGEN):
            seen[code] = True
        elif not _is_importing(frame):
            seen[code] = True
            files.add(code.co_filename.removeprefix(_EDGEN))

    sys.argv = ["edgen", *arguments]
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files.discard("__main__.py")
    return sorted(name for name in files if not name.startswith(_NOT_COUNTED))


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORTS):
            return True
        frame = frame.f_back
    return False


def executed(arguments: list[str]) -> int:
    """Print the figures of all tasks; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench executed", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--files", action="store_true", help="name the files")
    asked = parser.parse_args(arguments)
    found = {}
    with tempfile.TemporaryDirectory(prefix="edgen-executed-") as folder:
        for task, command in list_tasks(Path(folder)).items():
            out = Path(folder, f"{task}.json")
            run(sys.executable, "-m", "bench.executed", str(out), *command)
            found[task] = json.loads(out.read_text())
    if asked.json:
        print(
            json.dumps(
                {task: {"count": len(files), "files": files} for task, files in found.items()}, indent=1
            )
        )
        return 0
    for task, files in found.items():
        print(f"{task}: {len(files)} files with a function executed")
        if asked.files:
            print("".join(f"  {file}\n" for file in files), end="")
    return 0


if __name__ == "__main__":
    target = Path(sys.argv[1])
    with contextlib.redirect_stdout(sys.stderr):
        recorded = record_files(sys.argv[2:])
    target.write_text(json.dumps(recorded))

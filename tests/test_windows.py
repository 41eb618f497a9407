"""On Windows edgen reads, checks, exports and compares runs, and prints in a sentence that it writes none."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT, fork_server

# All work is done on this system first: the output is then known, and libraries are imported before the
# change.
SCRIPT = """
import contextlib, importlib, io, json, pkgutil, sys
from pathlib import Path

def load():
    import edgen
    for module in pkgutil.walk_packages(edgen.__path__, "edgen."):
        if not module.name.startswith(("edgen.__main__", "edgen.env.", "edgen.providers.litellm.")):
            importlib.import_module(module.name)

def run(commands):
    from edgen.cli.app import app
    from edgen.cli.output import run_guarded
    ended = {}
    for line in commands:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = run_guarded(lambda: app(line.split(), prog_name="edgen"))
            except SystemExit as end:
                code = end.code
        ended[line] = (code or 0, out.getvalue(), err.getvalue())
    return ended

asked = json.load(sys.stdin)
load()
facts = {"made": run(asked["make"]), "before": run(asked["work"])}
for name in asked["written"]:
    Path(name).rename(Path("before", name))
for name in [name for name in sys.modules if name.partition(".")[0] == "edgen"]:
    del sys.modules[name]

from tests import windows
windows.become()
load()
import edgen
facts["after"] = run(asked["work"])
there = {*Path().iterdir()}
facts["refused"] = run(asked["refused"])
try:
    edgen.generate("job.yaml", output="python", progress=False)
except edgen.errors.UsageError as error:
    facts["python"] = str(error)
opened = edgen.open("run")
facts["read"] = [opened.status.accepted, len(list(opened.conversations())), len(opened.stats().arms)]
facts["left"] = sorted(map(str, {*Path().iterdir()} - there))
print(json.dumps(facts))
"""

MAKE = (
    "generate job.yaml -n 12 -o run",
    "generate job.yaml -n 12 -o other --set asks=2",
    "generate arms.yaml -n 4 -o arms",
    "pairs arms --by probability",
)
WORK = (
    "--help", "status run", "status arms --json", "runs . --json", "show run 0", "validate run", "stats run", "stats arms --json",
    "compare run other --json", "compare arms", "preview job.yaml -n 1", "estimate job.yaml", "space show education_dialogue",
    "prompts", "plugins", "doctor job.yaml --no-call", "batch list run", "parse told.txt",
    "export run --to csv -o out/csv", "export run --to hf --files jsonl -o out/hf", "export run --to ed -o out/ed",
    "export arms --to sharegpt -o out/arms", "export run --to convokit -o out/convokit", "export run --to sft -o out/sft",
    "report run -o run.html", "report arms -o arms.html", "init mine", "generate job.yaml -n 12 -o run",
)  # fmt: skip
WRITTEN = ("out", "run.html", "arms.html", "mine")
REFUSED = (
    "generate job.yaml -n 13 -o run", "generate job.yaml -o new", "pairs arms --by oracle", "merge run -o merged",
    "select run --where turns>2 -o chosen", "annotate run --labels teacher_moves",
)  # fmt: skip
SENTENCE = "this command writes a run, and edgen writes runs on Linux and macOS only."


def contents(folder: Path) -> dict[str, bytes]:
    found = (path for name in WRITTEN for path in (folder / name, *(folder / name).rglob("*")))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found if path.is_file()}


@pytest.mark.integration
@pytest.mark.only_long
@pytest.mark.skipif(sys.platform != "linux", reason="Linux is what is made to look like Windows")
def test_runs_are_read_as_anywhere_and_none_is_written(tmp_path: Path) -> None:
    job = (ROOT / "jobs" / "quickstart.yaml").read_text()
    (tmp_path / "job.yaml").write_text(job)
    (tmp_path / "arms.yaml").write_text(f"{job}arms: {{one: {{}}, two: {{asks: 2}}}}\n")
    (tmp_path / "told.txt").write_text(
        "Teacher: Hi.\nStudent: Hé.\nTeacher: Bye.\nStudent: Bye.\n", encoding="utf-8"
    )
    (tmp_path / "before").mkdir()
    done = fork_server.finish(
        code=SCRIPT, cwd=tmp_path,
        text=json.dumps({"make": MAKE, "work": WORK, "written": WRITTEN, "refused": REFUSED}),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    facts: dict[str, Any] = json.loads(done.stdout)
    assert [code for code, _, _ in facts["made"].values()] == [0, 0, 0, 3], facts[
        "made"
    ]  # pairs without a probability
    assert {line: code for line, (code, _, _) in facts["before"].items()} == dict.fromkeys(WORK, 0), facts[
        "before"
    ]
    for line in WORK:
        age = r'"(age|size|bytes|modified|elapsed)[a-z_]*": *[\d.]+'
        before, after = (
            [re.sub(age, "", str(one)) for one in facts[when][line]] for when in ("before", "after")
        )
        assert after == before, line
    assert contents(tmp_path) == contents(tmp_path / "before")

    for line, (code, _, said) in facts["refused"].items():
        assert (code, SENTENCE in said) == (2, True), (line, said)
    assert SENTENCE in facts["python"]
    assert facts["left"] == [], "a command that writes nothing leaves nothing"
    assert facts["read"] == [12, 12, 1]


def test_the_workflow_runs_on_windows_what_is_tried_here() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    steps = [step["run"] for step in workflow["jobs"]["windows"]["steps"] if "run" in step]
    ran = {step.split()[1] for step in steps if step.startswith("edgen ")}
    assert ran
    assert ran <= {line.split()[0] for line in WORK}
    assert SENTENCE.split(" on ")[1].rstrip(".") in steps[-1]


ONLY_SOME = re.compile(
    r"sys\.platform|\bos\.name\b|\b(fcntl|resource|msvcrt|pwd|grp|termios|tty|readline)\.[a-z]|\bos\.(O_(NOFOLLOW|DIRECTORY|"
    r"NONBLOCK|CLOEXEC)|link|fork|kill|killpg|getuid|geteuid|fchmod|mkfifo|statvfs|uname|sched_\w+)\b|\bSIG(HUP|KILL|QUIT|USR\d|"
    r"ALRM)\b|pthread_sigmask|add_signal_handler|tzset|import (fcntl|resource|msvcrt|pwd|grp|termios|tty|readline)\b"
)


def test_one_module_knows_what_systems_differ_in() -> None:
    files = {path: path.read_text(encoding="utf-8") for path in (ROOT / "edgen").rglob("*.py")}
    found = {str(path.relative_to(ROOT)) for path, text in files.items() if ONLY_SOME.search(text)}
    assert found == {"edgen/core/system.py"}

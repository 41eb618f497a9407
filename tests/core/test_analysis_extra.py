"""Without the extra `analysis`, edgen makes, checks and exports data sets; measures name the extra."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

pytestmark = pytest.mark.integration

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("matplotlib", "numpy", "rensa"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""

COMMANDS = """
from edgen.__main__ import main

codes = []
for line in sys.stdin.read().splitlines():
    sys.argv = ["edgen", *line.split()]
    try:
        main()
    except SystemExit as end:
        codes.append(end.code or 0)
print(codes, file=sys.stderr)
"""

PYTHON = """
import edgen

run = edgen.generate("job.yaml", conversations=12, output="python", progress=False)
assert run.status.accepted == len(list(run.conversations())) == 12
assert "12" in run._repr_html_()
run.export("csv", "rows")
for work in (run.stats, run.report, lambda: edgen.compare(run), lambda: run.pairs(by="probability")):
    try:
        work()
    except edgen.errors.UsageError as error:
        print(error, file=sys.stderr)
"""


def run_without(folder: Path, script: str, text: str = "") -> str:
    """Return the stderr of a script in a process without the extra's packages."""
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT + script],
        input=text, capture_output=True, text=True, timeout=120, cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


def edgen_without(folder: Path, *lines: str) -> tuple[list[int], str]:
    """Run commands one after the other in one process; return their exit codes, and stderr."""
    *said, codes = run_without(folder, COMMANDS, "\n".join(lines)).splitlines()
    return [int(code) for code in codes.strip("[]").split(",")], "\n".join(said)


GENERATE = "generate job.yaml -n 12 -o run"
WORK = (
    "status run", "show run 0", "validate run", "preview job.yaml -n 1", "estimate job.yaml --runs .", "runs .",
    "export run --to csv -o csv", "export run --to hf -o hf", "export run --to ed -o ed", "merge run -o merged",
    GENERATE, "space show education_dialogue", "doctor job.yaml --no-call",
)  # fmt: skip
MEASURES = ("stats run", "report run", "compare run run", "pairs run --by probability")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.yaml").write_text((ROOT / "jobs" / "quickstart.yaml").read_text())
    return tmp_path


def test_all_work_does_without_and_measures_say_which_extra_is_missing(folder: Path) -> None:
    lines = (GENERATE, *WORK, *MEASURES)
    codes, said = edgen_without(folder, *lines)
    expected = [0] * (1 + len(WORK)) + [2] * len(MEASURES)
    assert [*zip(lines, codes, strict=True)] == [*zip(lines, expected, strict=True)], said
    require_sentences("\n".join(said.splitlines()[-len(MEASURES) :]), len(MEASURES))


def test_python_does_without_as_well(folder: Path) -> None:
    require_sentences(run_without(folder, PYTHON), 4)


def require_sentences(said: str, count: int) -> None:
    sentences = [line for line in said.splitlines() if line]
    assert len(sentences) == count, said
    for sentence in sentences:
        assert "numpy" in sentence, sentence
        assert "the extra 'analysis'" in sentence, sentence
        assert "nstall it with" in sentence, sentence

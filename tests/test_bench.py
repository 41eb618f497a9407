"""`python -m bench` lists the benchmarks for an unknown name or on request."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from bench.__main__ import BENCHMARKS, CAMPAIGNS, main
from bench.measure import ROOT

# Oneshot enters 82 on a quick machine; a slow one may also enter the progress display.
MOST_FILES = {"oneshot": 83, "tutoring": 97, "export": 59, "measure": 49}


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["stats", "--help"]])
def test_help_lists_every_benchmark(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    listed = {
        line.split()[0]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("  ") and line[2] != " "
    }
    assert listed == {*BENCHMARKS, *CAMPAIGNS}


@pytest.mark.parametrize("words", [["nosuch"], ["stats", "nosuch"], ["--larger"], ["stats", "kills"]])
def test_an_unknown_name_is_refused_with_what_there_is(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"no such benchmark: {words[-1]}\n")
    assert "  web_pages " in said.err
    assert said.out == ""


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_each_campaign_prints_its_own_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f"python -m bench {name}" in capsys.readouterr().out


@pytest.mark.integration
@pytest.mark.only_long  # three CPU seconds for a figure that changes with the structure alone
def test_a_small_task_enters_few_files() -> None:
    """The limit is two thirds of the files that each entered before the code was organised by domain."""
    done = subprocess.run(
        [sys.executable, "-m", "bench", "executed", "--json"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert done.returncode == 0
    counts = {task: found["count"] for task, found in json.loads(done.stdout).items()}
    assert counts.keys() == MOST_FILES.keys()
    assert not {task: count for task, count in counts.items() if count > MOST_FILES[task]}

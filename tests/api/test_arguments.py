"""Python functions take the options that structs declare: by name, with the same defaults and help texts."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.api.objects.arguments import split
from edgen.asking.options import AnnotateOptions, CandidateOptions, PairOptions
from edgen.core.errors import EdgenError, UsageError
from tests import signatures

OF = {one.name: one for one in signatures.FUNCTIONS}


def _find(name: str) -> Any:
    return getattr(edgen.Run, name, None) or getattr(edgen, name)


def test_the_signatures_are_those_of_the_structs() -> None:
    assert signatures.PAGE.read_text(encoding="utf-8") == signatures.page(), "`make docs` writes the file"


@pytest.mark.parametrize("name", OF)
def test_a_function_shows_every_option_with_its_default_and_help(name: str) -> None:
    function, shown = _find(name), inspect.signature(_find(name)).parameters
    own = inspect.signature(inspect.unwrap(function)).parameters
    for field, (_, default) in signatures.fields_of(OF[name]).items():
        if shown[field].kind is inspect.Parameter.KEYWORD_ONLY:
            assert shown[field].default == default
        elif shown[field].default is not inspect.Parameter.empty:
            assert shown[field].default == (default or own[field].default)
    assert ("overrides" in shown) == (OF[name].free == "overrides")
    assert "\nOptions::\n" in function.__doc__
    assert not {*OF[name].without} & {*shown}


def test_the_same_arguments_without_and_within_an_event_loop() -> None:
    assert (
        inspect.signature(edgen.generate).parameters.keys()
        == inspect.signature(edgen.agenerate).parameters.keys()
    )


def test_type_checkers_know_the_names_and_the_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    calls = {
        "edgen.generate('job.yaml', conversations=2, seed=3, on=None)": "",
        "edgen.generate('job.yaml', workers='two')": "arg-type",
        "edgen.compare('a', 'b', arms=['x'], roles={'Agent': 'Tutor'})": "",
        "edgen.compare('a', arm='x')": "call-arg",
        "edgen.open('a').stats(['overview'], judge=2, limits={'in_flight': 2})": "",
        "edgen.open('a').stats(judge='two')": "arg-type",
        "edgen.open('a').export('hf', output='b', train='student', subtask=2)": "",
        "edgen.open('a').export('hf', 'b', workers=None)": "arg-type",
        "edgen.open('a').pairs('oracle', min_turns_left=2)": "",
        "edgen.open('a').pairs('oracle', credit='none')": "arg-type",
        "edgen.select('a', 'b', drawn=2)": "call-arg",
    }
    file = tmp_path / "calls.py"
    file.write_text("\n".join(["import edgen", *calls]))
    cache = f"--cache-dir={tmp_path / 'cache'}"
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", cache, str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = checked.stdout.splitlines()
    for number, (call, code) in enumerate(calls.items(), start=2):
        found = [line for line in lines if line.partition(": ")[0].endswith(f":{number}")]
        assert [f"[{code}]" in line for line in found] == ([True] if code else []), (call, checked.stdout)


def test_arguments_are_the_fields_and_the_rest_is_the_jobs() -> None:
    asked, values = split(AnnotateOptions, {
        "people": "a.csv", "by": ["x", "y"], "gold": Path("g.csv"), "sample": 3, "progress": False,
        "limits": {"in_flight": 2},
    })  # fmt: skip
    assert AnnotateOptions(**values) == AnnotateOptions(
        people=(Path("a.csv"),), by=("x", "y"), gold="g.csv", sample=3, overrides=('limits={"in_flight": 2}',)
    )
    assert asked.changes == ('limits={"in_flight": 2}',)
    _, values = split(CandidateOptions, {"prompt": Path("mine.j2"), "after": 0})
    assert values == {"prompt": "mine.j2", "after": 0, "overrides": ()}
    _, values = split(PairOptions, {"name": "strict", "min_turns_left": 2})
    assert PairOptions(**values) == PairOptions(name="strict", min_turns_left=2)


def test_an_argument_that_nothing_takes_is_a_key_that_no_job_has(tmp_path: Path) -> None:
    run = edgen.generate(
        {
            "name": "few", "conversations": 2, "space": "education_dialogue", "prompt": "education_dialogue",
            "backends": {"default": {"type": "simulator"}},
        },
        output=tmp_path / "run", progress=False,
    )  # fmt: skip
    wrong: dict[str, Any] = {"min_turn_left": 2}
    with pytest.raises(EdgenError, match="min_turn_left"):
        run.pairs("oracle", **wrong)
    with pytest.raises(UsageError, match="arm: there is no such argument"):
        edgen.compare(run, **{"arm": "x"})

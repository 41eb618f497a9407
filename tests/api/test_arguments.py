"""Python functions take the options that structs declare: by name, with the same defaults and help texts."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import edgen
from edgen.api.objects import signatures as SIGNED  # noqa: N812
from edgen.api.objects.arguments import read_question
from edgen.asking.options import AnnotateOptions, CandidateOptions, PairOptions
from edgen.core.errors import EdgenError, UsageError
from tests import signatures

OF = {one.name: one for page in signatures.PAGES for one in page.functions}


# Arguments that Python takes in another form than the struct's field: None for the existing pairs, a mapping.
OTHER_FORM = {("pairs", "by"), ("select", "cap")}


def _find(name: str) -> Any:
    return getattr(edgen.Run, name, None) or getattr(edgen, name)


def test_the_signatures_are_those_of_the_structs() -> None:
    for one in signatures.PAGES:
        assert one.path.read_text(encoding="utf-8") == signatures.page(one), "`make docs` writes the file"


@pytest.mark.parametrize("name", OF)
def test_a_function_shows_every_option_with_its_default_and_help(name: str) -> None:
    function, shown = _find(name), inspect.signature(_find(name)).parameters
    code = function.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    for field, (_, default) in signatures.fields_of(OF[name]).items():
        if field not in own:
            assert shown[field].kind is inspect.Parameter.KEYWORD_ONLY
        if (name, field) not in OTHER_FORM and shown[field].default is not inspect.Parameter.empty:
            assert shown[field].default == default, field
    assert ("overrides" in shown) == (OF[name].free == "overrides")
    assert "\nOptions::\n" in function.__doc__
    assert not {*OF[name].without} & {*shown}


def test_the_same_arguments_without_and_within_an_event_loop() -> None:
    assert (
        inspect.signature(edgen.generate).parameters.keys()
        == inspect.signature(edgen.agenerate).parameters.keys()
    )


def test_arguments_are_the_fields_and_the_rest_is_the_jobs() -> None:
    _, values = read_question(SIGNED.annotate, AnnotateOptions, {
        "people": "a.csv", "by": ["x", "y"], "gold": Path("g.csv"), "sample": 3, "progress": False,
        "limits": {"in_flight": 2},
    })  # fmt: skip
    assert AnnotateOptions(**values) == AnnotateOptions(
        people=(Path("a.csv"),), by=("x", "y"), gold="g.csv", sample=3, overrides=('limits={"in_flight": 2}',)
    )
    _, values = read_question(SIGNED.candidates, CandidateOptions, {"prompt": Path("mine.j2"), "after": 0})
    assert values == {"prompt": "mine.j2", "after": 0, "overrides": ()}
    _, values = read_question(SIGNED.pairs, PairOptions, {"name": "strict", "min_turns_left": 2})
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
    # Options of the command line alone.
    for name in ("trust_code", "own", "overrides"):
        with pytest.raises(EdgenError, match=f"{name}: unknown key|--set goes with"):
            run.stats(**{name: "x"})  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=f"{name}: there is no such argument"):
            edgen.compare(run, **{name: "x"})  # type: ignore[arg-type]
    with pytest.raises(EdgenError, match="write_only"):
        edgen.generate(run.folder / "job.yaml", write_only="x")
    with pytest.raises(UsageError, match="min_turn_left: there is no such argument"):
        edgen.compare(run, **wrong)

"""Python functions take the options that structs declare: by name, with the same defaults and help texts."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import edgen
from edgen.api.objects import argument_types
from edgen.api.objects.arguments import split
from edgen.asking.options import AnnotateOptions, CandidateOptions, PairOptions
from edgen.core.errors import EdgenError
from tests import argument_types as page

FUNCTIONS: dict[str, Any] = {
    "PairArguments": edgen.Run.pairs,
    "AnnotateArguments": edgen.annotate,
    "CandidateArguments": edgen.candidates,
}


def test_the_types_are_those_of_the_structs() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "`make docs` writes the file"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_shows_every_field_with_its_default_and_help(name: str) -> None:
    kind, without = page.STRUCTS[name]
    function = FUNCTIONS[name]
    shown = inspect.signature(function).parameters
    own = kind(**{field: "" for field in without if field in ("write",)})
    for field in {*kind.__struct_fields__} - {*without, "overrides"}:
        assert shown[field].kind is inspect.Parameter.KEYWORD_ONLY
        assert shown[field].default == getattr(own, field)
        assert f"    {field}: " in function.__doc__
    assert [*shown][-1] == "overrides"
    assert {"progress", "on_event", "trust_hosts"} <= {*shown}
    keys = {"backends", "limits", "batch", "asks", "forms"}
    assert {*get_type_hints(getattr(argument_types, name))} - keys <= {*shown}


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

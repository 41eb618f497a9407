"""Options of formats: declared in structs, one flag each, refused by formats that do not take them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import pytest

from edgen.cli.export import _make_format_options
from edgen.core.errors import UsageError
from edgen.core.options import option
from edgen.core.registry import find_all
from edgen.export.options import FormatOptions, list_flags
from edgen.export.shared_options import ChatOptions, ExportOptions, MaskOptions, PairSetOptions
from edgen.plugin.formats import TokenOptions
from tests.export.folders import RUN, write
from tests.export.runs import FORMATS, options


class Own(MaskOptions, frozen=True, kw_only=True):
    """Options with masks, and a field that a plugin adds."""

    most: Annotated[int | None, option("The most.", metavar="N", ge=2, le=9)] = None
    names: Annotated[tuple[str, ...], option("Names.")] = ()


def test_every_format_takes_the_texts_of_its_card_and_nothing_else() -> None:
    common = set.intersection(
        *({f for kind in one.structs for f in kind.__struct_fields__} for one in FORMATS.values())
    )
    assert common == {"license", "language"} == {*ExportOptions.__struct_fields__}


def test_a_format_has_each_option_once_and_the_command_has_them_all() -> None:
    declared = set()
    for one in find_all("format"):
        fields = [field for kind in one.structs for field in kind.__struct_fields__]
        assert len(fields) == len({*fields}), one.name
        declared |= {*fields}
    assert {one.name for one in _make_format_options(None)} == declared


def test_what_follows_from_a_format_is_taken_without_more() -> None:
    assert FORMATS["mtpo"].Options is None
    assert FORMATS["mtpo"].structs == (ExportOptions, ChatOptions, PairSetOptions)
    read = options("trl-dpo", min_turns_left="2", against=Path("a") / "b", train="student", actions="labels")
    assert read.of(PairSetOptions).min_turns_left == 2
    assert read.of(PairSetOptions).others == (Path("a/b"),)
    assert read.of(ChatOptions).train == "student"
    assert read.of(TokenOptions) == TokenOptions()  # not passed: the defaults
    assert [*read.given] == ["train", "min_turns_left", "against", "actions"]


def test_flags_say_the_limits_the_default_and_both_forms_of_a_switch() -> None:
    masks, most, names = list_flags(Own)
    assert (masks.flags, masks.switch, masks.metavar) == (("--masks/--no-masks",), True, None)
    assert masks.help.endswith("[default: masks]")
    assert (most.flags, most.metavar, most.help) == (("--most",), "N", "The most.  [2<=x<=9]")
    assert (names.several, names.help) == (True, "Names.")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"most": 1}, "--most 1: expected a whole number, 2 or more, 9 at most."),
        ({"most": "10"}, "--most 10: expected a whole number, 2 or more, 9 at most."),
        ({"most": "x"}, "--most x: expected a whole number, 2 or more, 9 at most."),
        ({"masks": "perhaps"}, "--masks perhaps: expected true or false."),
        ({"names": 3}, "--names 3: expected one or several texts."),
        ({"mosst": 3}, "trl-sft has no option --mosst (did you mean 'most'?); leave it out."),
    ],
)
def test_values_are_read_strictly_also_from_python(given: dict[str, object], said: str) -> None:
    from dataclasses import replace

    with pytest.raises(UsageError) as refused:
        replace(FORMATS["trl-sft"], Options=Own).read(given)
    assert str(refused.value) == said


def test_a_format_of_ones_own_extends_what_others_share() -> None:
    from dataclasses import replace

    read = replace(FORMATS["trl-sft"], Options=Own).read(
        {"masks": False, "most": "3", "names": "x", "train": None}
    )
    assert read.own == Own(masks=False, most=3, names=("x",))
    assert read.of(MaskOptions) is read.own is read.of(Own)
    assert isinstance(read.own, FormatOptions)
    assert [*read.given] == ["masks", "most", "names"]


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("sft", {"min_turns_left": 1}, "sft does not take --min-turns-left; llamafactory, mtpo, openrlhf, refuel, sweet and 3"),
        ("sft", {"pairs": "mine"}, "sft does not take --pairs; llamafactory,"),
        ("hf", {"csv_safe": False}, "hf does not take --no-csv-safe; csv does. Leave --no-csv-safe out."),
        ("ed", {"opening": "user"}, "ed does not take --opening; llamafactory, mtpo,"),
        ("hf", {"layer": "moves"}, "hf has columns for every layer; leave --layer out."),
    ],
)  # fmt: skip
def test_an_option_of_other_formats_names_these(name: str, given: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        options(name, **given)


def test_the_card_repeats_every_option_that_was_given(tmp_path: Path) -> None:
    write("trl-sft", RUN, tmp_path / "out", masks=False, train="student", opening="user", license="my own")
    assert (
        "edgen export AGAIN --to trl-sft --license 'my own' --train student --opening user --no-masks -o DIR\n"
        in (tmp_path / "out" / "README.md").read_text()
    )

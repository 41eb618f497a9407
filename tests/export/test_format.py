"""The size of `Format`, and the errors for a name that belongs to one of its parts."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest

from edgen.export.format import Format, FormatCard, FormatLayout, list_flaws
from tests.export.runs import FORMATS

REQUIRED: dict[str, Any] = {
    "name": "odd", "summary": "Odd.", "rows": lambda _run, _chat: iter(()), "tables": {"id": "a number"}, "use": "load it",
}  # fmt: skip
MOST_FIELDS = 12


def test_a_format_has_few_fields_and_five_that_are_required() -> None:
    fields = dataclasses.fields(Format)
    assert len(fields) <= MOST_FIELDS
    without = (dataclasses.MISSING, dataclasses.MISSING)
    assert [one.name for one in fields if (one.default, one.default_factory) == without] == [*REQUIRED]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("notes", ("x",), r"`notes` belongs to FormatCard; write card=FormatCard\(notes=…\)"),
        ("files", list, r"`files` belongs to FormatLayout; write layout=FormatLayout\(files=…\)"),
        ("by_range", True, r"`by_range` belongs to FormatLayout; write layout=FormatLayout\(by_range=…\)"),
        ("nothing", 1, "unexpected keyword argument 'nothing'"),
    ],
)
def test_a_name_of_a_part_is_explained(name: str, value: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Format(**REQUIRED, **{name: value})


def test_a_class_with_a_name_of_a_part_has_a_flaw() -> None:
    class Odd(Format):
        notes = ("never read",)

    (flaw,) = list_flaws(Odd(**REQUIRED))
    assert (
        flaw
        == "has a field in its class that is ignored: `notes` belongs to FormatCard; write card=FormatCard(notes=…)"
    )
    wrong: Any = {"tags": ("x",)}
    (flaw,) = list_flaws(Format(**REQUIRED, card=wrong))
    assert flaw.startswith("has a `card` that is not a FormatCard")


def test_names_of_parts_are_unique_and_shipped_formats_have_no_flaw() -> None:
    names = [one.name for part in (Format, FormatCard, FormatLayout) for one in dataclasses.fields(part)]
    assert len(names) == len({*names})
    for one in FORMATS.values():
        assert [*list_flaws(one)] == []
        assert copy.copy(one) == one

"""An object has a part if its class derives from it; else edgen uses the part's defaults."""

from __future__ import annotations

from typing import ClassVar

from edgen.core.plugin_checks import find_misplaced_names
from edgen.core.registry import part_of


class Core:
    name = "core"


class Seeing:
    """A part with a method, a value and a declared name without a value."""

    limit: ClassVar[int] = 3
    unit: ClassVar[str]

    def see(self) -> str:
        return "nothing"


class Hearing:
    def hear(self) -> str:
        return "nothing"


class Plain(Core):
    pass


class Owl(Seeing, Core):
    def see(self) -> str:
        return "everything"


class Forgetful(Core):
    limit = 4

    def see(self) -> str:
        return "everything"


class Derived(Forgetful):
    pass


def test_an_object_with_the_part_is_returned_itself() -> None:
    owl = Owl()
    assert part_of(owl, Seeing) is owl
    assert part_of(owl, Seeing).see() == "everything"
    assert part_of(owl, Seeing).limit == 3


def test_an_object_without_the_part_has_its_defaults_in_one_shared_instance() -> None:
    assert part_of(Plain(), Seeing).see() == "nothing"
    assert part_of(Plain(), Seeing) is part_of(object(), Seeing)
    assert part_of(Plain(), Hearing).hear() == "nothing"


def test_a_name_of_a_part_that_the_object_does_not_have_is_a_flaw() -> None:
    (flaw,) = find_misplaced_names(Forgetful(), (Seeing, Hearing))
    assert flaw == (
        "defines `limit` and `see`, which belong to Seeing; derive from it as well: "
        "class Forgetful(Seeing, Core)"
    )
    assert [*find_misplaced_names(Derived(), (Seeing,))] == [flaw]


def test_a_name_that_was_set_on_the_object_counts_too() -> None:
    plain = Plain()
    vars(plain)["unit"] = "lux"
    assert [*find_misplaced_names(plain, (Seeing,))] == [
        "defines `unit`, which belongs to Seeing; derive from it as well: class Plain(Seeing, Core)"
    ]


def test_an_object_with_the_part_or_without_its_names_has_no_flaw() -> None:
    assert not [*find_misplaced_names(Owl(), (Seeing, Hearing))]
    assert not [*find_misplaced_names(Plain(), (Seeing, Hearing))]

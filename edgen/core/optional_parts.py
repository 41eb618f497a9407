"""Optional parts of the objects that packages add to edgen.

The base class of a kind holds what every object of the kind needs. Everything else is in parts: mixin
classes, one per purpose, with a default for each of their names. An object has a part if its class derives
from it: `class Notes(RecordContents, Family)`. edgen asks for a part by its class:
`part_of(family, RecordContents).scenes(space)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, cast

from edgen.core.text import join_list

P = TypeVar("P")


_defaults: dict[type, Any] = {}


def part_of(kind: object, part: type[P]) -> P:
    """Return the object itself if it has the part, else the part's defaults: one shared instance.

    A part is created without arguments. Its defaults may use each other, but nothing of the object.
    """
    if isinstance(kind, part):
        return kind
    if part not in _defaults:
        _defaults.setdefault(part, part())
    return cast(P, _defaults[part])


def list_names_of_part(part: type) -> frozenset[str]:
    """Return the public names that a part declares, with those of the classes that it derives from."""
    declared = (
        {*vars(one), *vars(one).get("__annotations__", {})} for one in part.__mro__ if one is not object
    )
    return frozenset(name for names in declared for name in names if not name.startswith("_"))


def find_misplaced_names(kind: object, parts: Sequence[type]) -> Iterator[str]:
    """Yield a clause for each of these parts that the object does not have, but some of whose names it
    defines: edgen would ignore them."""
    for part in parts:
        if isinstance(kind, part):
            continue
        names = list_names_of_part(part)
        for one in type(kind).__mro__:
            own = getattr(kind, "__dict__", ()) if one is type(kind) else ()
            if defined := sorted(names & {*vars(one), *own}):
                yield _describe_misplaced(defined, part, one)
                break


def _describe_misplaced(names: Sequence[str], part: type, where: type) -> str:
    listed = join_list([f"`{name}`" for name in names])
    belong = "belongs" if len(names) == 1 else "belong"
    bases = [part.__name__, *(base.__name__ for base in where.__bases__ if base is not object)]
    return (
        f"defines {listed}, which {belong} to {part.__name__}; derive from it as well: "
        f"class {where.__name__}({', '.join(bases)})"
    )

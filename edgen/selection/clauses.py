"""Clauses of a selection, read from its options and checked against the run."""

from __future__ import annotations

import msgspec

from edgen.core.errors import UsageError
from edgen.core.yaml_values import suggest_name
from edgen.expressions.conversation import NEAR_DUPLICATE, ConversationNames, is_ordered
from edgen.expressions.language import Expression, ExpressionError, Kind, NamedTerm
from edgen.selection.options import SelectOptions
from edgen.selection.split import NewSplit

MAX_CLAUSES = 100


class WhereClause(msgspec.Struct, frozen=True):
    """A condition on each conversation."""

    name: str
    expression: Expression

    @property
    def is_ordered(self) -> bool:
        return is_ordered(self.expression)


class Limit(msgspec.Struct, frozen=True):
    """A maximum number of conversations with each value of the name `of`. `most`: None for as many as the
    rarest value has."""

    name: str
    says: str
    value: NamedTerm
    most: int | None
    of: str


def read_where(options: SelectOptions, names: ConversationNames) -> list[WhereClause]:
    """Return the clauses. Clauses on near-duplicates come last: they search only the conversations that
    remain. Raises UsageError."""
    if len(options.where) > MAX_CLAUSES:
        raise UsageError(f"--where: at most {MAX_CLAUSES} of them; join some with `and`.")
    found = []
    for number, text in enumerate(options.where, 1):
        try:
            found.append(WhereClause(f"where{number}", Expression(text, names)))
        except ExpressionError as problem:
            raise UsageError(f"--where, {problem}") from None
    return sorted(found, key=lambda one: one.is_ordered)


def read_limits(options: SelectOptions, names: ConversationNames) -> list[Limit]:
    """Return the caps, then the balances. Raises UsageError."""
    found = []
    for text in options.cap:
        name, equals, count = text.rpartition("=")
        if not equals or not count.strip().isdecimal() or not 0 < int(count) < 2**40:
            raise UsageError(f"--cap {text}: expected NAME=N, as in --cap topic=50.")
        found.append(_parse_limit("--cap", name.strip(), text, names, int(count)))
    return [*found, *(_parse_limit("--balance", text.strip(), text, names, None) for text in options.balance)]


def read_split(options: SelectOptions, names: ConversationNames) -> NewSplit | None:
    """Return the requested new split; None without one. Raises UsageError."""
    if options.split_by is None:
        if options.in_order or options.test is not None:
            raise UsageError("--in-order and --test go with --split-by NAME: say what to split by.")
        return None
    if options.test is not None and not 0 <= options.test < 1:
        raise UsageError(
            f"--test {options.test}: expected a share of 0 or more and below 1, as in --test 0.2."
        )
    name = options.split_by.strip()
    named = _find("--split-by", name, names, () if options.in_order else ("list",))
    return NewSplit(name, named, in_order=options.in_order)


def _parse_limit(option: str, name: str, says: str, names: ConversationNames, most: int | None) -> Limit:
    return Limit(f"{option[2:]}_{name}", says, _find(option, name, names), most, name)


def _find(option: str, name: str, names: ConversationNames, more: tuple[Kind, ...] = ()) -> NamedTerm:
    kinds = ("text", "truth", "number", "any", *more)

    def find_single(one: str) -> NamedTerm | None:
        named = names.find(tuple(one.split(".")))
        return None if named is None or named.kind not in kinds or one == NEAR_DUPLICATE else named

    if (found := find_single(name)) is None:
        message = f"{option} {name}: there is no such dimension, or it has no single values"
        raise UsageError(f"{message}{suggest_name(name, [*filter(find_single, names.list_names())])}.")
    return found

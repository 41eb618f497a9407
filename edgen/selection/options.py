"""What is asked of a selection, read and checked against the run that it is made of."""

from __future__ import annotations

import msgspec

from edgen.core.errors import UsageError
from edgen.core.yaml_values import nearest
from edgen.expressions.conversation import ConversationNames, is_ordered
from edgen.expressions.language import Expression, ExpressionError, Named

MAX_CLAUSES = 100


class SelectOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`where`: what has to hold, each an expression. `cap`: NAME=N, at most N conversations of each value of a name.
    `balance`: names of whose values all are to be as frequent as the rarest. `draw`: so many at random. `seed` decides
    what a cap, a balance and a draw take."""

    where: tuple[str, ...] = ()
    cap: tuple[str, ...] = ()
    balance: tuple[str, ...] = ()
    draw: int | None = None
    seed: int = 0

    @property
    def words(self) -> tuple[str, ...]:
        """The options as they are written on a command line."""
        named = [("--where", self.where), ("--cap", self.cap), ("--balance", self.balance)]
        words = [word for option, values in named for value in values for word in (option, value)]
        if self.draw is not None:
            words += ["--draw", str(self.draw)]
        return (*words, "--seed", str(self.seed)) if self.seed else tuple(words)


class Where(msgspec.Struct, frozen=True):
    """A clause that asks something of each conversation."""

    name: str
    expression: Expression

    @property
    def is_ordered(self) -> bool:
        return is_ordered(self.expression)


class Limit(msgspec.Struct, frozen=True):
    """At most `most` of each value of a name; None: as many as the rarest value has."""

    name: str
    says: str
    value: Named
    most: int | None


def read_where(options: SelectOptions, names: ConversationNames) -> list[Where]:
    """The clauses, those about near-duplicates last: these are looked for among what is left."""
    if len(options.where) > MAX_CLAUSES:
        raise UsageError(f"--where: at most {MAX_CLAUSES} of them; join some with `and`.")
    found = []
    for number, text in enumerate(options.where, 1):
        try:
            found.append(Where(f"where{number}", Expression(text, names)))
        except ExpressionError as problem:
            raise UsageError(f"--where, {problem}") from None
    return sorted(found, key=lambda one: one.is_ordered)


def read_limits(options: SelectOptions, names: ConversationNames) -> list[Limit]:
    """The caps, then the balances. Raises UsageError."""
    found = []
    for text in options.cap:
        name, equals, count = text.rpartition("=")
        if not equals or not count.strip().isdecimal() or not 0 < int(count) < 2**40:
            raise UsageError(f"--cap {text}: expected NAME=N, as in --cap topic=50.")
        found.append(_limit("--cap", name.strip(), text, names, int(count)))
    return [*found, *(_limit("--balance", text.strip(), text, names, None) for text in options.balance)]


def _limit(option: str, name: str, says: str, names: ConversationNames, most: int | None) -> Limit:
    named = names.find(tuple(name.split(".")))
    if named is None or named.kind not in ("text", "truth", "number", "any"):
        message = f"{option} {name}: there is no such dimension, or it has no single values"
        raise UsageError(f"{message}{nearest(name, [*names.known()])}.")
    return Limit(f"{option[2:]}_{name}", says, named, most)

"""A compiler of expressions into closures, one for each node. Kinds are checked at compile time; if a kind is
unknown then, values are checked at run time. See `language`."""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from edgen.core.yaml_values import shorten_word, suggest_name
from edgen.expressions.terms import (
    CALLED,
    ExpressionError,
    Kind,
    NamedTerm,
    Run,
    Value,
    Vocabulary,
    describe,
    find_kind,
)

MAX_DEPTH = 40

_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_SAME: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {ast.Eq: operator.eq, ast.NotEq: operator.ne}
_IN: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.In: lambda one, several: one in several,
    ast.NotIn: lambda one, several: one not in several,
}
_SUMS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class Function(NamedTuple):
    """A function of the language. `takes`: the allowed kinds of each argument; the last one repeats up to
    `most` arguments. `gives`: the kind of the result. `run`: computes the result."""

    takes: tuple[tuple[Kind, ...], ...]
    most: int
    gives: Kind
    run: Callable[..., Value]


FUNCTIONS = {
    "len": Function((("text", "list"),), 1, "number", len),
    "count": Function(
        (("list",), ("text", "number", "truth")), 2, "number", lambda several, one: several.count(one)
    ),
    "any": Function((("list",),), 1, "truth", any),
    "min": Function((("number",), ("number",)), 20, "number", min),
    "max": Function((("number",), ("number",)), 20, "number", max),
    "abs": Function((("number",),), 1, "number", abs),
    "lower": Function((("text",),), 1, "text", str.lower),
}

_UNWANTED: dict[type[ast.AST], str] = {
    ast.Pow: "powers are not computed here",
    ast.Lambda: "functions cannot be made here",
    ast.IfExp: "`if` has no place here; use `and` and `or`",
    ast.NamedExpr: "nothing can be assigned here; two names are compared by ==",
    ast.JoinedStr: "texts are plain here, without an f",
    ast.BitAnd: "use `and`",
    ast.BitOr: "use `or`",
    ast.Invert: "use `not`",
    ast.Dict: "there are no mappings here",
}


class Compiler:
    """The compilation of one text. It collects the names in `paths`, and warnings in `notes`."""

    def __init__(self, text: str, vocabulary: Vocabulary) -> None:
        self._text = text
        self._vocabulary = vocabulary
        self.paths: dict[tuple[str, ...], NamedTerm] = {}
        self.notes: list[str] = []

    def parse(self) -> ast.expr:
        if not self._text:
            raise ExpressionError("", 1, "this is empty; write a condition, as in turns < 20")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self._text, mode="eval").body
        except SyntaxError as problem:
            column = min(max(problem.offset or 1, 1), len(self._text))
            hint = "; two values are compared by ==" if "=" in self._text and "==" not in self._text else ""
            raise ExpressionError(self._text, column, f"this cannot be read ({problem.msg}){hint}") from None
        except (ValueError, RecursionError, MemoryError) as problem:
            reason = "it is nested too deep" if not isinstance(problem, ValueError) else str(problem)
            raise ExpressionError(self._text, 1, f"this cannot be read ({reason})") from None

    def refuse(self, node: ast.AST, clause: str) -> ExpressionError:
        """Return the error that points at a node."""
        start = getattr(node, "col_offset", 0)  # in bytes of UTF-8
        column = len(self._text.encode("utf-8", "surrogatepass")[:start].decode("utf-8", "ignore")) + 1
        return ExpressionError(self._text, column, clause)

    def compile(self, node: ast.expr, depth: int) -> tuple[Kind, Run]:
        """Return the kind of a node's value, and the function that computes the value. Raises
        ExpressionError."""
        if depth > MAX_DEPTH:
            raise self.refuse(node, f"this is nested deeper than {MAX_DEPTH} levels")
        match node:
            case ast.Constant():
                return self._compile_constant(node)
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self._compile_name(node)
            case ast.List() | ast.Tuple() | ast.Set():
                return self._list(node)
            case ast.BoolOp():
                return self._compile_connective(node, depth)
            case ast.UnaryOp():
                return self._compile_unary(node, depth)
            case ast.Compare():
                return self._compile_comparison(node, depth)
            case ast.BinOp():
                return self._compile_arithmetic(node, depth)
            case ast.Call():
                return self._compile_call(node, depth)
        raise self.refuse(node, _UNWANTED.get(type(node), "this is unsupported in an expression"))

    # ---- values

    def _compile_constant(self, node: ast.Constant) -> tuple[Kind, Run]:
        value = node.value
        if value is None:
            raise self.refuse(node, "write `is None` to check for a missing value")
        if not isinstance(value, bool | int | float | str):
            raise self.refuse(node, "values are numbers, texts, True and False")
        return find_kind(value), lambda _: value

    def _list(self, node: ast.List | ast.Tuple | ast.Set) -> tuple[Kind, Run]:
        values: list[Value] = []
        for one in node.elts:
            if not isinstance(one, ast.Constant):
                raise self.refuse(one, "a list holds numbers or texts, as in [3, 4]")
            self._compile_constant(one)
            if values and find_kind(one.value) != find_kind(values[0]):
                raise self.refuse(
                    one, f"this is {describe(one.value)} in a list that begins with {describe(values[0])}"
                )
            values.append(one.value)
        if not values:
            raise self.refuse(node, "this list is empty")
        found = tuple(values)
        return "list", lambda _: found

    def _compile_name(self, node: ast.expr) -> tuple[Kind, Run]:
        path = self._read_path(node)
        found = self._vocabulary.find(path)
        name = ".".join(path)
        if found is None:
            known = [*self._vocabulary.list_names()]
            known = [one for one in known if one.startswith(f"{path[0]}.")] or known
            raise self.refuse(node, f"there is no {name} here{suggest_name(name, known)}")
        self.paths[path] = found
        return found.kind, found.get

    def _note_text(self, named: ast.expr, text: ast.expr) -> None:
        """Note a comparison of a name with a text that the name never has."""
        if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
            return
        found = (
            self.paths.get(self._read_path(named))
            if isinstance(named, ast.Name | ast.Attribute | ast.Subscript)
            else None
        )
        if found is not None and found.texts and text.value not in found.texts:
            problem = self.refuse(
                text,
                f"no {'.'.join(self._read_path(named))} is "
                f"{shorten_word(text.value)!r}{suggest_name(text.value, found.texts)}",
            )
            self.notes.append(str(problem))

    def _read_path(self, node: ast.expr) -> tuple[str, ...]:
        parts: list[str] = []
        while not isinstance(node, ast.Name):
            if isinstance(node, ast.Attribute):
                parts.append(node.attr)
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                if not isinstance(node.slice.value, str):
                    raise self.refuse(node.slice, "single turns and positions have no names")
                parts.append(node.slice.value)
            else:
                raise self.refuse(node, "only names have parts, as in scenario.topic")
            node = node.value
        return (node.id, *reversed(parts))

    # ---- connections

    def _compile_truth(self, node: ast.expr, depth: int) -> Run:
        kind, run = self.compile(node, depth + 1)
        if kind == "truth":
            return run
        if kind != "any":
            raise self._refuse_as_truth(node, kind)

        def run_checked(about: Any) -> Value:
            value = run(about)
            if value is not None and not isinstance(value, bool):
                raise self._refuse_as_truth(node, find_kind(value))
            return value

        return run_checked

    def _refuse_as_truth(self, node: ast.expr, kind: Kind) -> ExpressionError:
        return self.refuse(
            node, f"this is {CALLED[kind]}, where a condition is expected; compare it with something"
        )

    def _compile_connective(self, node: ast.BoolOp, depth: int) -> tuple[Kind, Run]:
        parts = [self._compile_truth(value, depth) for value in node.values]
        deciding = isinstance(node.op, ast.Or)

        def run(about: Any) -> Value:
            result: Value = not deciding
            for part in parts:
                value = part(about)
                if value is deciding:
                    return deciding
                if value is None:
                    result = None
            return result

        return "truth", run

    def _compile_unary(self, node: ast.UnaryOp, depth: int) -> tuple[Kind, Run]:
        if isinstance(node.op, ast.Not):
            truth = self._compile_truth(node.operand, depth)
            return "truth", lambda about: None if (value := truth(about)) is None else not value
        if isinstance(node.op, ast.USub):
            return "number", self._apply(operator.neg, [node.operand], depth)
        if isinstance(node.op, ast.UAdd):
            return "number", self._apply(operator.pos, [node.operand], depth)
        raise self.refuse(node, _UNWANTED[type(node.op)])

    def _compile_arithmetic(self, node: ast.BinOp, depth: int) -> tuple[Kind, Run]:
        function = _SUMS.get(type(node.op))
        if function is None:
            raise self.refuse(node, _UNWANTED.get(type(node.op), "only + - * / compute numbers"))
        return "number", self._apply(function, [node.left, node.right], depth)

    def _apply(self, function: Callable[..., Value], operands: Sequence[ast.expr], depth: int) -> Run:
        """Return a closure that applies an arithmetic function to numbers."""
        return self._make_call(function, operands, [("number",)] * len(operands), depth)

    def _compile_call(self, node: ast.Call, depth: int) -> tuple[Kind, Run]:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        function = FUNCTIONS.get(name)
        if function is None:
            raise self.refuse(node, f"this function is unknown{suggest_name(name, [*FUNCTIONS])}")
        least, most = len(function.takes), function.most
        if node.keywords or not least <= len(node.args) <= max(least, most):
            wanted = f"{least}" if most <= least else f"{least} or more"
            raise self.refuse(node, f"{name} takes {wanted} value{'s' if wanted != '1' else ''}")
        takes = [function.takes[min(place, least - 1)] for place in range(len(node.args))]
        run = self._make_call(function.run, node.args, takes, depth)
        if name == "count":
            self._note_text(*node.args)
        return function.gives, run

    def _make_call(
        self, function: Callable[..., Value], operands: Sequence[ast.expr], takes: Sequence[tuple[Kind, ...]],
            depth: int,
    ) -> Run:  # fmt: skip
        compiled = [self.compile(operand, depth + 1) for operand in operands]
        for operand, (kind, _), allowed in zip(operands, compiled, takes, strict=True):
            self._require(operand, kind, allowed)
        parts = [(run, kind == "any", place) for place, (kind, run) in enumerate(compiled)]

        def run(about: Any) -> Value:
            values = []
            for part, unknown, place in parts:
                if (value := part(about)) is None:
                    return None
                if unknown:
                    self._require(operands[place], find_kind(value), takes[place])
                values.append(value)
            try:
                return function(*values)
            except (ZeroDivisionError, OverflowError):
                return None  # no result: a missing value

        return run

    def _require(self, node: ast.expr, kind: Kind, allowed: tuple[Kind, ...]) -> None:
        if kind != "any" and kind not in allowed:
            wanted = " or ".join(CALLED[one] for one in allowed)
            raise self.refuse(node, f"this is {CALLED[kind]}, where {wanted} is expected")

    # ---- comparisons

    def _compile_comparison(self, node: ast.Compare, depth: int) -> tuple[Kind, Run]:
        operands = [node.left, *node.comparators]
        if any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return "truth", self._is_missing(node, depth)
        compiled = [self.compile(operand, depth + 1) for operand in operands]
        for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
            self._note_text(right, left)
            if type(op) in _SAME:
                self._note_text(left, right)
        pairs = [
            self._compile_pair(node.comparators[place], op, *compiled[place : place + 2])
            for place, op in enumerate(node.ops)
        ]
        if len(pairs) == 1:
            return "truth", pairs[0]

        def run(about: Any) -> Value:
            found = [pair(about) for pair in pairs]
            return False if False in found else None if None in found else True

        return "truth", run

    def _is_missing(self, node: ast.Compare, depth: int) -> Run:
        right = node.comparators[0]
        if len(node.ops) > 1 or not (isinstance(right, ast.Constant) and right.value is None):
            raise self.refuse(right, "`is` goes with None only; compare values with ==")
        _, run = self.compile(node.left, depth + 1)
        wanted = isinstance(node.ops[0], ast.Is)
        return lambda about: (run(about) is None) is wanted

    def _compile_pair(
        self, node: ast.expr, op: ast.cmpop, left: tuple[Kind, Run], right: tuple[Kind, Run]
    ) -> Run:
        """Return the closure of one comparison. `node`: its right side, where an error points."""
        inside = type(op) in _IN
        function = (_ORDER | _SAME | _IN)[type(op)]
        one, other = left[1], right[1]
        unknown = "any" in (left[0], right[0])
        check = self._require_in if inside else self._require_same
        check(node, left[0], right[0])

        def run(about: Any) -> Value:
            a, b = one(about), other(about)
            if a is None or b is None:
                return None
            if unknown:
                check(node, find_kind(a), find_kind(b))
            return function(a, b)

        return run

    def _require_same(self, node: ast.expr, left: Kind, right: Kind) -> None:
        if "list" in (left, right):
            raise self.refuse(node, "use a list with `in`, len(…) or count(…)")
        if left != right and "any" not in (left, right):
            raise self.refuse(node, f"this compares {CALLED[left]} with {CALLED[right]}")

    def _require_in(self, node: ast.expr, left: Kind, right: Kind) -> None:
        if right not in ("list", "text", "any"):
            raise self.refuse(node, f"`in` needs a list or a text, and this is {CALLED[right]}")
        if left == "list" or (right == "text" and left not in ("text", "any")):
            raise self.refuse(node, f"{CALLED[left]} cannot be in {CALLED[right]}")

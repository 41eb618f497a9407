"""The Jinja environment of templates: no access to Python, and all work counted.

Jinja's sandbox keeps a template from Python's internals. It does not limit time or memory, so every construct
that can repeat or grow is counted here: one render may spend MAX_WORK units (about a second), create no text
above MAX_TEXT characters and print no more than that. For this, `count_work` rewrites the parsed template:
loops, macros, `~`, comparisons, slices and list literals pass through filters of this environment whose names
templates cannot use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView
from typing import Any

from jinja2 import StrictUndefined, Template, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from edgen.core.values import MAX_TEXT, ValueWithFields

MAX_WORK = 1_000_000  # units: a loop step, a call, 64 processed characters
MAX_RANGE = 10_000
_MAX_BITS = 4096  # bits of a whole number

_JINJA_FILTERS = ("capitalize", "count", "d", "default", "length", "lower", "title", "upper")
_OWN_FILTERS = ("first", "join", "last", "list", "replace", "trim")
FILTERS = tuple(sorted(_JINJA_FILTERS + _OWN_FILTERS))
# Only tests in constant time: no test reads a whole text.
TESTS = (
    *("boolean", "defined", "divisibleby", "even", "false", "float", "integer", "mapping", "none"),
    *("number", "odd", "string", "true", "undefined"),
)
# No method that can make a long text from a short one, or read Python's attributes (format).
TEXT_METHODS = frozenset(
    {"capitalize", "endswith", "lower", "split", "splitlines", "startswith", "title", "upper"}
)
_DICT_METHODS = frozenset({"get", "items", "keys", "values"})
_CONTAINERS = (list, tuple, dict, range, MappingView)


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment of one template. `work` counts the units of the current render. Rendering is
    synchronous, so two renders of one template never overlap on an event loop."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        # optimized=False and a finalize that takes the context: nothing is computed while compiling.
        super().__init__(
            autoescape=False,
            undefined=StrictUndefined,
            optimized=False,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_finalize_value,
        )
        self.work = 0
        self.globals = {"range": self._make_range}
        self.tests = {name: self.tests[name] for name in TESTS}
        self.filters = {name: self._meter_filter(self.filters[name]) for name in _JINJA_FILTERS}
        self.filters |= {
            "first": self._meter_filter(lambda value: value[0]),
            "last": self._meter_filter(lambda value: value[-1]),
            "trim": self._meter_filter(lambda value: self.print_text(value).strip()),
            "list": lambda value: list(self._meter_items(value, 1)),
            "join": self._join,
            "replace": self._replace,
            "_each": self._meter_items,
            "_spend": self._spend_here,
            "_weigh": self._weigh,
            "_concat": self._concat,
            "_flat": self._flatten,
        }

    def make_context(self, template: Template, variables: Mapping[str, Any]) -> Context:
        """Return the context for one render of a template of this environment.

        It replaces `Template.new_context`, which looks up every global in a chain of mappings, for every
        render.
        """
        names = {**self.globals, **variables}
        return Context(self, names, template.name, template.blocks, globals=self.globals)

    def spend(self, units: int) -> None:
        """Count work. Raises SecurityError if a render exceeds its limit."""
        self.work += units
        if self.work > MAX_WORK:
            raise SecurityError("it loops or computes far more than a prompt needs, and was stopped")

    def print_text(self, value: Any) -> str:
        """Return the printed form of `value`. Raises SecurityError if a prompt should not print such a
        value."""
        if type(value) is str or type(value) is ValueWithFields:
            self.spend(1 + (len(value) >> 6))
            return str(value)
        if isinstance(value, float) and not math.isfinite(value):
            raise SecurityError("this number is infinite or undefined, and cannot be printed")
        if isinstance(value, str | int | float | Undefined):
            return str(value)  # an Undefined raises here, with its name
        if value is None:
            raise SecurityError(
                "this value is empty (None) in this scenario; write {{ name or 'something' }} "
                "or put it inside {% if name %}"
            )
        raise SecurityError("only texts and numbers can be printed; a list goes through |join(', ')")

    # Called by Jinja.

    def getattr(self, obj: Any, attribute: str) -> Any:
        self.spend(1 + _count_units(obj))
        if isinstance(obj, ValueWithFields) and attribute not in TEXT_METHODS:
            return obj.fields.get(attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, ValueWithFields) and isinstance(argument, str):
            return self.getattr(obj, argument)
        return super().getitem(obj, argument)

    def wrap_str_format(self, value: Any) -> None:
        """Return no wrapper, so that is_safe_attribute refuses `format`: '{:999999999}'."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, str):
            return attr in TEXT_METHODS
        if isinstance(obj, dict):
            return attr in _DICT_METHODS
        if isinstance(obj, LoopContext):
            return not attr.startswith("_")
        return not callable(value) and super().is_safe_attribute(obj, attr, value)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.spend(1 + sum(map(_count_units, args)))
        result = super().call(context, obj, *args, **kwargs)
        self.spend(_count_units(result))
        return result

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str):
            raise SecurityError("'%' does not format texts here; join them with ~")
        if operator == "*" and isinstance(right, _GROWING):
            left, right = right, left
        if operator == "*" and isinstance(left, _GROWING) and isinstance(right, int):
            self._check_room(len(left) * right)
        elif operator == "+" and isinstance(left, _GROWING) and isinstance(right, _GROWING):
            self._check_room(len(left) + len(right))
        elif operator in ("*", "**") and isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length()
            if (bits * right if operator == "**" else bits + right.bit_length()) > _MAX_BITS:
                raise SecurityError(f"a number above {_MAX_BITS} bits is more than a prompt needs")
        result = super().call_binop(context, operator, left, right)
        self.spend(_count_units(result))
        return result

    # Filters and globals.

    def _meter_filter(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(value: Any, *args: Any, **kwargs: Any) -> Any:
            self.spend(1 + _count_units(value))
            return function(value, *args, **kwargs)

        return run

    def _check_room(self, size: int) -> None:
        if size > MAX_TEXT:
            raise SecurityError(f"a text or list above {MAX_TEXT:,} characters or items is refused")

    def _make_range(self, *bounds: int) -> range:
        steps = range(*bounds)
        if steps[MAX_RANGE:]:
            raise SecurityError(f"range() gives at most {MAX_RANGE:,} steps")
        return steps

    def _join(self, value: Any, separator: str = "") -> str:
        return self._glue_texts(
            [self.print_text(item) for item in self._meter_items(value, 1)], self.print_text(separator)
        )

    def _concat(self, values: list[Any]) -> str:
        return self._glue_texts([self.print_text(value) for value in values], "")

    def _glue_texts(self, texts: list[str], separator: str) -> str:
        self._check_room(sum(map(len, texts)) + len(separator) * len(texts))
        return separator.join(texts)

    def _replace(self, value: Any, old: Any, new: Any) -> str:
        value, old, new = self.print_text(value), self.print_text(old), self.print_text(new)
        self._check_room(len(value) + value.count(old) * (len(new) - len(old)))
        return self.print_text(value.replace(old, new))

    def _meter_items(self, value: Iterable[Any], cost: int) -> Iterator[Any]:
        for item in value:
            self.spend(cost)
            yield item

    def _spend_here(self, value: Any, cost: int) -> Any:
        self.spend(cost)
        return value

    def _weigh(self, value: Any) -> Any:
        self.spend(1 + _count_units(value))
        return value

    def _flatten(self, value: Any) -> Any:
        # A list that was doubled and nested repeatedly is small to make and endless to compare.
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, _CONTAINERS):
                raise SecurityError("a list in a template holds texts and numbers, not other lists")
        return value


_GROWING = (str, list, tuple)


@pass_context
def _finalize_value(context: Context, value: Any) -> str:
    sandbox = context.environment
    assert isinstance(sandbox, Sandbox)
    if type(value) is str:
        sandbox.spend(1 + (len(value) >> 6))
        return value
    return sandbox.print_text(value)


def _count_units(value: Any) -> int:
    """Return the units for handling a value once."""
    if isinstance(value, str):
        return len(value) >> 6
    return len(value) if isinstance(value, _CONTAINERS) else 0


def count_work(template: nodes.Template) -> nodes.Template:
    """Return the parsed template with calls that count everything that repeats or grows."""
    _Metering().visit(template)
    return template


class _Metering(NodeTransformer):
    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - jinja2's naming
        cost = _count_pass_units(node.body)
        self.generic_visit(node)
        node.iter = _wrap_in_filter("_each", node.iter, cost)
        return node

    def visit_Macro(self, node: nodes.Macro | nodes.CallBlock) -> nodes.Node:  # noqa: N802
        zero = nodes.Const(0, lineno=node.lineno)
        charge = nodes.ExprStmt(
            _wrap_in_filter("_spend", zero, _count_pass_units(node.body)), lineno=node.lineno
        )
        self.generic_visit(node)
        node.body.insert(0, charge)
        return node

    visit_CallBlock = visit_Macro  # noqa: N815

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _wrap_in_filter("_concat", nodes.List(node.nodes, lineno=node.lineno))

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.expr = _wrap_in_filter("_weigh", node.expr)
        for operand in node.ops:
            operand.expr = _wrap_in_filter("_weigh", operand.expr)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _wrap_in_filter("_weigh", node) if isinstance(node.arg, nodes.Slice) else node

    def visit_List(self, node: nodes.List | nodes.Dict) -> nodes.Node:  # noqa: N802
        return _wrap_in_filter("_flat", self.generic_visit(node))

    visit_Dict = visit_List  # noqa: N815

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _wrap_in_filter("_flat", node) if node.ctx == "load" else node


def _wrap_in_filter(name: str, node: nodes.Node, *args: int) -> nodes.Filter:
    constants = [nodes.Const(arg, lineno=node.lineno) for arg in args]
    return nodes.Filter(node, name, constants, [], None, None, lineno=node.lineno)


def _count_pass_units(body: list[nodes.Node]) -> int:
    """Return the units of one pass through `body`, besides its own calls and loops."""
    cost = 1
    for statement in body:
        cost += 1 + sum(1 for _ in statement.find_all(nodes.Node))
        cost += sum(len(data.data) >> 6 for data in statement.find_all(nodes.TemplateData))
    return cost

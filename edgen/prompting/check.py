"""What is wrong with a parsed template, before it is ever rendered: a list of problems with lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

from jinja2 import meta, nodes

from edgen.errors import Problem
from edgen.loading import nearest
from edgen.prompting.sandbox import FILTERS, TESTS, Sandbox

Block = Literal["system", "user"]
BLOCKS: tuple[Block, ...] = ("system", "user")

_REFUSED: dict[type[nodes.Node], str] = {
    nodes.Include: "{% include %} is refused: a prompt is one file; write its text here",
    nodes.Import: "{% import %} is refused: a prompt is one file; define the macro here",
    nodes.FromImport: "{% from … import %} is refused: a prompt is one file; define the macro here",
    nodes.Extends: "{% extends %} is refused: a prompt is one file; write its text here",
    nodes.EvalContextModifier: "{% autoescape %} is refused: a prompt is plain text",
}
# Names that Jinja gives a meaning inside macros and blocks, by which a template could call itself.
_RESERVED = frozenset({"self", "super", "varargs", "kwargs"})


def problems(template: nodes.Template, sandbox: Sandbox, available: Collection[str]) -> list[Problem]:
    """Everything wrong with `template`, in the order of its lines.

    Raises TemplateSyntaxError for what Jinja's own compiler refuses.
    """
    found = [*_constructs(template), *_blocks(template)]
    if not found:
        unknown = free_names(template, sandbox) - set(available)
        found = [(_line(template, name), _unknown(name, available)) for name in unknown]
    return [Problem(f"line {line}", message) for line, message in sorted(found)]


def free_names(template: nodes.Template, sandbox: Sandbox) -> frozenset[str]:
    """The variables that must be handed to the template: used in it, not set in it."""
    return frozenset(meta.find_undeclared_variables(template) - sandbox.globals.keys())


def _constructs(template: nodes.Template) -> Iterator[tuple[int, str]]:
    for node in template.find_all(nodes.Node):
        for kind, message in _REFUSED.items():
            if isinstance(node, kind):
                yield node.lineno, message
        if isinstance(node, nodes.For) and node.recursive:
            yield node.lineno, "'recursive' is refused: a loop goes over a list once"
        elif isinstance(node, nodes.Name) and node.ctx == "load" and node.name in _RESERVED:
            yield node.lineno, f"'{node.name}' is refused in a prompt"
        elif isinstance(node, nodes.Filter) and node.name not in FILTERS:
            yield node.lineno, f"there is no filter '{node.name}'{_near(node.name, FILTERS)}"
        elif isinstance(node, nodes.Test) and node.name not in TESTS:
            yield node.lineno, f"there is no test '{node.name}'{_near(node.name, TESTS)}"


def _blocks(template: nodes.Template) -> Iterator[tuple[int, str]]:
    blocks = list(template.find_all(nodes.Block))
    if not blocks:
        return
    for block in blocks:
        if block.name not in BLOCKS:
            yield block.lineno, f"there is no block '{block.name}' (known: {', '.join(BLOCKS)})"
        elif block not in template.body:
            yield block.lineno, f"the block '{block.name}' stands inside something else; put it outside"
    if not any(block.name == "user" for block in blocks):
        yield blocks[0].lineno, "a prompt with blocks needs {% block user %} … {% endblock %}"
    for node in template.body:
        if not isinstance(node, nodes.Block) and not _blank(node):
            yield (
                _first_text(node),
                "this stands outside the blocks and would be lost; move it into one of them",
            )


def _blank(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Output) and all(
        isinstance(part, nodes.TemplateData) and not part.data.strip() for part in node.nodes
    )


def _first_text(node: nodes.Node) -> int:
    """The line of the first thing in `node` that is not white space."""
    for part in node.nodes if isinstance(node, nodes.Output) else ():
        if not isinstance(part, nodes.TemplateData):
            return part.lineno
        if part.data.strip():
            blank = part.data[: len(part.data) - len(part.data.lstrip())]
            return part.lineno + blank.count("\n")
    return node.lineno


def _line(template: nodes.Template, name: str) -> int:
    return min(
        node.lineno for node in template.find_all(nodes.Name) if node.name == name and node.ctx == "load"
    )


def _unknown(name: str, available: Collection[str]) -> str:
    return f"there is no variable '{name}'{_near(name, sorted(available))}"


def _near(name: str, known: Collection[str]) -> str:
    """The nearest known name, and all of them."""
    near = nearest(name, known)
    return near if "(known: " in near else f"{near}; known: {', '.join(known)}"

"""Static checks of a template: a list of problems with lines.

`check_size` limits the text before Jinja parses it, and so the work of parsing, checking and compiling;
`check_template` examines the parsed template. `compile_text` runs both checks and compiles the template.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterator, Mapping
from types import CodeType, TracebackType
from typing import Literal

import jinja2
from jinja2 import TemplateSyntaxError, meta, nodes

from edgen.core.errors import Problem, TemplateError
from edgen.core.text import compile_later
from edgen.core.yaml_values import shorten_word, suggest_name
from edgen.prompting.sandbox import FILTERS, TESTS, TEXT_METHODS, Sandbox, count_work

Block = Literal["system", "user"]
BLOCKS: tuple[Block, ...] = ("system", "user")
MAX_PIECES = 10_000  # names, numbers, signs and stretches of text; a prompt has hundreds
MAX_NESTED = 10  # nested tags: Jinja's compiler processes each level again
MAX_OPERANDS = 20  # of one comparison: Python compiles a chain in quadratic time
_MAX_DIGITS = 50
_MOST_SUGGESTIONS = 100  # names for which a suggestion is searched

_REFUSED: dict[type[nodes.Node], str] = {
    nodes.Include: "{% include %} is refused: a prompt is one file; write its text here",
    nodes.Import: "{% import %} is refused: a prompt is one file; define the macro here",
    nodes.FromImport: "{% from … import %} is refused: a prompt is one file; define the macro here",
    nodes.Extends: "{% extends %} is refused: a prompt is one file; write its text here",
    nodes.EvalContextModifier: "{% autoescape %} is refused: a prompt is plain text",
}
# Jinja's names in macros and blocks, by which a template could call itself.
_RESERVED = frozenset({"self", "super", "varargs", "kwargs"})


def check_size(text: str, sandbox: Sandbox) -> None:
    """Raise TemplateSyntaxError if the template has more pieces than a prompt needs, or a longer number."""
    pieces = 0
    for line, kind, value in sandbox.lex(text):
        pieces += kind != "whitespace"
        if pieces > MAX_PIECES:
            raise TemplateSyntaxError(
                f"up to here the template has more than {MAX_PIECES:,} names, numbers, signs and stretches "
                "of text; a prompt is shorter",
                line,
            )
        if kind in ("integer", "float") and len(value) > _MAX_DIGITS:
            raise TemplateSyntaxError(
                f"a number of {len(value):,} characters is longer than a prompt needs", line
            )
        if kind == "float" and not math.isfinite(float(value.replace("_", ""))):
            raise TemplateSyntaxError(f"the number {value} is too large", line)


def check_template(
    template: nodes.Template,
    defined: Collection[str],
    available: Collection[str],
    fields: Mapping[str, Collection[str]],
) -> tuple[list[Problem], frozenset[str]]:
    """Return all problems of `template`, in the order of its lines, and the variables that rendering needs:
    those used in it, neither set in it nor `defined` by its sandbox. The variables count only if there are no
    problems. Raises TemplateSyntaxError for errors of Jinja's own compiler."""
    found = [*_find_forbidden_constructs(template), *_list_blocks(template)]
    used: frozenset[str] = frozenset()
    if not found:
        used = frozenset(meta.find_undeclared_variables(template) - set(defined))
        found = _find_unknown_names(template, used - set(available), available)
        found += _find_unknown_fields(template, fields)
    return [Problem(f"line {line}", message) for line, message in sorted(found)], used


def _find_forbidden_constructs(template: nodes.Template) -> Iterator[tuple[int, str]]:
    for node, depth in _iterate_nodes(template):
        if depth > MAX_NESTED:
            yield (
                node.lineno,
                f"tags are nested more than {MAX_NESTED} deep here; that is more than a prompt needs",
            )
            return
        for kind, message in _REFUSED.items():
            if isinstance(node, kind):
                yield node.lineno, message
        if isinstance(node, nodes.For) and node.recursive:
            yield node.lineno, "'recursive' is refused: a loop goes over a list once"
        elif isinstance(node, nodes.Name) and node.ctx == "load" and node.name in _RESERVED:
            yield node.lineno, f"'{node.name}' is refused in a prompt"
        elif isinstance(node, nodes.Filter) and node.name not in FILTERS:
            yield (
                node.lineno,
                f"there is no filter '{shorten_word(node.name)}'{_suggest_names(node.name, FILTERS)}",
            )
        elif isinstance(node, nodes.Test) and node.name not in TESTS:
            yield (
                node.lineno,
                f"there is no test '{shorten_word(node.name)}'{_suggest_names(node.name, TESTS)}",
            )
        elif isinstance(node, nodes.Compare) and len(node.ops) > MAX_OPERANDS:
            yield node.lineno, f"a comparison of more than {MAX_OPERANDS} parts; join shorter ones with `and`"


def _iterate_nodes(template: nodes.Template) -> Iterator[tuple[nodes.Node, int]]:
    """Yield every node, with the number of tags around it."""
    waiting: list[tuple[nodes.Node, int]] = [(node, 0) for node in template.iter_child_nodes()]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        inner = depth + ("body" in node.fields)
        waiting += [(child, inner) for child in node.iter_child_nodes()]


def _list_blocks(template: nodes.Template) -> Iterator[tuple[int, str]]:
    blocks = list(template.find_all(nodes.Block))
    if not blocks:
        return
    outside = {id(node) for node in template.body}
    for block in blocks:
        if block.name not in BLOCKS:
            yield block.lineno, f"there is no block '{shorten_word(block.name)}' (known: {', '.join(BLOCKS)})"
        elif id(block) not in outside:
            yield block.lineno, f"the block '{block.name}' is nested; move it to the top level"
    if not any(block.name == "user" for block in blocks):
        yield blocks[0].lineno, "a prompt with blocks needs {% block user %} … {% endblock %}"
    for node in template.body:
        if not isinstance(node, nodes.Block) and not _is_blank(node):
            yield (
                _find_first_text_line(node),
                "this stands outside the blocks and would be lost; move it into one of them",
            )


def _is_blank(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Output) and all(
        isinstance(part, nodes.TemplateData) and not part.data.strip() for part in node.nodes
    )


def _find_first_text_line(node: nodes.Node) -> int:
    """Return the line of the first part of `node` that is not white space."""
    for part in node.nodes if isinstance(node, nodes.Output) else ():
        if not isinstance(part, nodes.TemplateData):
            return part.lineno
        if part.data.strip():
            blank = part.data[: len(part.data) - len(part.data.lstrip())]
            return part.lineno + blank.count("\n")
    return node.lineno


def _find_unknown_names(
    template: nodes.Template, unknown: Collection[str], available: Collection[str]
) -> list[tuple[int, str]]:
    """Return each unknown name, with the first line that uses it."""
    lines: dict[str, int] = {}
    for node in template.find_all(nodes.Name) if unknown else ():
        if node.ctx == "load" and node.name in unknown:
            lines[node.name] = min(node.lineno, lines.get(node.name, node.lineno))
    known = sorted(available)
    return [
        (
            line,
            f"there is no variable '{shorten_word(name)}'"
            + (_suggest_names(name, known) if i < _MOST_SUGGESTIONS else ""),
        )
        for i, (name, line) in enumerate(sorted(lines.items(), key=lambda item: (item[1], item[0])))
    ]


def _find_unknown_fields(
    template: nodes.Template, fields: Mapping[str, Collection[str]]
) -> Iterator[tuple[int, str]]:
    """Yield unknown fields of a variable's values."""
    for node in template.find_all((nodes.Getattr, nodes.Getitem)):
        assert isinstance(node, nodes.Getattr | nodes.Getitem)
        name = node.node.name if isinstance(node.node, nodes.Name) else ""
        arg = nodes.Const(node.attr) if isinstance(node, nodes.Getattr) else node.arg
        field = arg.value if isinstance(arg, nodes.Const) else None
        known = fields.get(name)
        if known is None or not isinstance(field, str) or field in known or field in TEXT_METHODS:
            continue
        near = _suggest_names(field, sorted(known)) if known else f"; {name} has no fields"
        yield node.lineno, f"no value of {name} has a '{shorten_word(field)}'{near}"


def _suggest_names(name: str, known: Collection[str]) -> str:
    """Return the nearest known name, and all of them."""
    near = suggest_name(name, known)
    return near if "(known: " in near else f"{near}; known: {', '.join(known)}"


# Exceptions that an invalid template can raise during rendering; any other is a bug in edgen.
RENDERING = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
_NO_FIELD = compile_later(r"^'str object' has no attribute '(\w+)'$")


def compile_text(
    text: str,
    source: str,
    sandbox: Sandbox,
    available: Collection[str],
    fields: Mapping[str, Collection[str]] | None = None,
) -> tuple[jinja2.Template, frozenset[str]]:
    """Compile a text for this sandbox; return it and its variables. Messages call the text `source`.

    Raises TemplateError as `load_prompt` does.
    """
    known = frozenset((name, frozenset(each)) for name, each in (fields or {}).items())
    code, used = _compile_cached(text, source, frozenset(sandbox.globals), frozenset(available), known)
    return jinja2.Template.from_code(sandbox, code, sandbox.globals), used


_SANDBOX = Sandbox()  # never renders: texts compile to the same code in every sandbox


@functools.lru_cache(maxsize=256)
def _compile_cached(
    text: str,
    source: str,
    given: frozenset[str],
    available: frozenset[str],
    fields: frozenset[tuple[str, frozenset[str]]],
) -> tuple[CodeType, frozenset[str]]:
    """Return the code of a text, cached per process, since arms and plans share templates."""
    try:
        check_size(text, _SANDBOX)
        tree = _SANDBOX.parse(text, filename=source)
        found, used = check_template(tree, given, available, dict(fields))
        if found:
            raise TemplateError.of(source, found)
        tree = count_work(tree)
        tree.set_environment(_SANDBOX)
        return _SANDBOX.compile(tree, filename=source), used
    except jinja2.TemplateSyntaxError as error:
        problem = Problem(f"line {error.lineno}", error.message or "syntax error")
        raise TemplateError.of(source, [problem]) from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        # Errors of Python's own compiler on Jinja's output.
        what = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise TemplateError(source, f"it cannot be compiled: {what}.") from None


def word_error(error: BaseException, template: jinja2.Template, source: str) -> TemplateError:
    """Describe a rendering error, with its line; messages call the template `source`."""
    line = _find_line(error.__traceback__, template)
    message = str(error)
    if isinstance(error, RecursionError):
        message = "a macro calls itself without end"
    elif found := _NO_FIELD.search(message):
        message = (
            f"a value has no field '{found[1]}': add it to every entry of the dimension, or test for it, as in "
            f"{{% if topic.{found[1]} is defined %}}"
        )
    elif isinstance(error, MemoryError) or not message:
        message = f"it cannot be computed ({type(error).__name__})"
    problem = (Problem(f"line {line}", message),) if line else ()
    summary = "it cannot be rendered:" if line else f"it cannot be rendered: {message}."
    return TemplateError(source, summary, problem)


def _find_line(traceback: TracebackType | None, template: jinja2.Template) -> int | None:
    """Return the line of the template being rendered, the innermost if macros call each other."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_globals.get("__jinja_template__") is template:
            line = template.get_corresponding_lineno(traceback.tb_lineno)
        traceback = traceback.tb_next
    return line

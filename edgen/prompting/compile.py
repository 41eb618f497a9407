"""Compilation of a template's text in a sandbox, and worded rendering errors."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping
from types import CodeType, TracebackType

import jinja2

from edgen.core.errors import Problem, TemplateError
from edgen.prompting.check import check_size, check_template
from edgen.prompting.sandbox import Sandbox, count_work

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
_NO_FIELD = re.compile(r"^'str object' has no attribute '(\w+)'$")


def compile_text(
    text: str,
    source: str,
    sandbox: Sandbox,
    available: Collection[str],
    fields: Mapping[str, Collection[str]] | None = None,
) -> tuple[jinja2.Template, frozenset[str]]:
    """Compile a text for this sandbox, and return its variables; messages call it `source`.

    Raises TemplateError as `load_prompt` does.
    """
    known = frozenset((name, frozenset(each)) for name, each in (fields or {}).items())
    code, used = _compiled(text, source, frozenset(sandbox.globals), frozenset(available), known)
    return jinja2.Template.from_code(sandbox, code, sandbox.globals), used


_SANDBOX = Sandbox()  # never renders: texts compile to the same code in every sandbox


@functools.lru_cache(maxsize=256)
def _compiled(
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
    """Describe a rendering error, with the line; messages call the template `source`."""
    line = _line_of(error.__traceback__, template)
    message = str(error)
    if isinstance(error, RecursionError):
        message = "a macro calls itself without end"
    elif found := _NO_FIELD.search(message):
        message = (
            f"a value says nothing of its '{found[1]}': give it to every entry of the dimension, or ask first, as in "
            f"{{% if topic.{found[1]} is defined %}}"
        )
    elif isinstance(error, MemoryError) or not message:
        message = f"it cannot be computed ({type(error).__name__})"
    problem = (Problem(f"line {line}", message),) if line else ()
    summary = "it cannot be rendered:" if line else f"it cannot be rendered: {message}."
    return TemplateError(source, summary, problem)


def _line_of(traceback: TracebackType | None, template: jinja2.Template) -> int | None:
    """Return the line of the template being rendered, the innermost if macros call each other."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_globals.get("__jinja_template__") is template:
            line = template.get_corresponding_lineno(traceback.tb_lineno)
        traceback = traceback.tb_next
    return line

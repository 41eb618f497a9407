"""A template's text, checked and compiled in a sandbox; and what goes wrong in rendering, in words."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping
from types import CodeType, TracebackType

import jinja2

from edgen.core.errors import Problem, TemplateError
from edgen.prompting.check import check_size, check_template
from edgen.prompting.sandbox import Sandbox, count_work

# What a template that is wrong can raise while it runs; anything else is a bug of edgen's.
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
    """A text as a compiled template of this sandbox, and the variables that it reads; `source` is what messages call it.

    Raises TemplateError as `load_prompt` does.
    """
    known = frozenset((name, frozenset(each)) for name, each in (fields or {}).items())
    code, used = _compiled(text, source, frozenset(sandbox.globals), frozenset(available), known)
    return jinja2.Template.from_code(sandbox, code, sandbox.globals), used


_SANDBOX = Sandbox()  # renders nothing: what a text compiles to is the same in each of them


@functools.lru_cache(maxsize=256)
def _compiled(
    text: str,
    source: str,
    given: frozenset[str],
    available: frozenset[str],
    fields: frozenset[tuple[str, frozenset[str]]],
) -> tuple[CodeType, frozenset[str]]:
    """The code of a text, once a process, since arms of a job and plans of a run have the same templates."""
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
        # Python's own compiler, handed what Jinja made of the template.
        what = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise TemplateError(source, f"it cannot be compiled: {what}.") from None


def word_error(error: BaseException, template: jinja2.Template, source: str) -> TemplateError:
    """What went wrong in rendering, with the line; `source` is what messages call the template."""
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
    """The line of the template that was being rendered, the innermost if macros call each other."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_globals.get("__jinja_template__") is template:
            line = template.get_corresponding_lineno(traceback.tb_lineno)
        traceback = traceback.tb_next
    return line

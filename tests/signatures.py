"""The signatures of Python functions, from the structs that declare their options.

They are in edgen/api/objects/signatures.py and in a domain's file. A domain has its functions in
tests/domains/X/signed_functions.py.

python -m tests.signatures writes them anew (make docs).
"""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from edgen.api.objects.arguments import JobBackends, Listening, QuestionKeys
from edgen.asking.options import AnnotateOptions, CandidateOptions, PairOptions
from edgen.core import registry
from edgen.core.options import find_option
from edgen.evaluation.options import CompareOptions, StatsOptions
from edgen.export.shared_options import (
    ChatOptions,
    ExportOptions,
    ExportRequest,
    LayerOptions,
    PairSetOptions,
)
from edgen.generation.options import GenerateOptions
from edgen.selection.options import SelectOptions
from tests import ROOT
from tests.domains import modules_of
from tests.signed_function import Signed, SignedPage

Struct = type[msgspec.Struct]


_ASKING = (Listening, QuestionKeys)
# Formats of domains have options of their own, which can be any keyword argument.
_FORMATS = tuple(
    kind
    for plugin in sorted(registry.list_plugins(), key=lambda one: one.name)
    if plugin.kind == "format" and plugin.object.startswith("edgen.export.")
    for kind in registry.find("format", plugin.name).structs
)
_FUNCTIONS = (
    Signed("generate", "functions.py", (GenerateOptions, Listening, JobBackends), ("write_only",)),
    Signed("select", "run_functions.py", (SelectOptions,), free=None),
    Signed("annotate", "run_functions.py", (AnnotateOptions, *_ASKING)),
    Signed("candidates", "run_functions.py", (CandidateOptions, *_ASKING)),
    Signed("compare", "run_functions.py", (CompareOptions,), ("own", "trust_code"), None),
    Signed("pairs", "run.py", (PairOptions, *_ASKING), ("people", "asker")),
    Signed("export", "run.py", (
        ExportRequest, ExportOptions, ChatOptions, PairSetOptions, LayerOptions, *dict.fromkeys(_FORMATS)
    ), ("to",), "options"),
    Signed("stats", "run.py", (StatsOptions, *_ASKING), ("own", "trust_code")),
)  # fmt: skip
_HEAD = '''"""The signatures of Python functions that take declared options. `make docs` writes this file, from the
functions and from the structs of their options; nothing calls these functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

'''


_IMPORTS = """\
# ruff: noqa: A002 - names of options

if TYPE_CHECKING:
    from edgen.api.objects.arguments import AnyRun
    from edgen.api.objects.job import AnyJob
    from edgen.execution.progress import Listener
"""
PAGES = (
    SignedPage(ROOT / "edgen" / "api" / "objects" / "signatures.py", _IMPORTS, _FUNCTIONS),
    *(module.PAGE for module in modules_of("signed_functions")),
)


def page(one: SignedPage) -> str:
    """Return the text of a file."""
    parts = [
        "\n".join(["", *_render_function(each, one.path.parent / each.file), ""]) for each in one.functions
    ]
    return "\n".join([_HEAD + one.imports, *parts])


def fields_of(one: Signed) -> dict[str, tuple[Any, Any]]:
    """Return the type and the default of each option of a function, by its name."""
    found: dict[str, tuple[Any, Any]] = {}
    for kind in one.kinds:
        hints = get_type_hints(kind, include_extras=True)
        for field in msgspec.structs.fields(kind):
            if field.name not in (*one.without, "overrides"):
                found.setdefault(field.name, (hints[field.name], field.default))
    return found


def _render_function(one: Signed, file: Path) -> list[str]:
    own = _find_own(one.name, file)
    names = {each.arg for each in (*own.posonlyargs, *own.args, *own.kwonlyargs)}
    if own.args and own.args[0].arg == "self":
        own.args[0].annotation = ast.Name("Any")
    own.kwarg = None
    shown = ast.unparse(own).replace("'", '"')
    options = [
        f"{name}: {_render(hint, _takes_file(hint))} = {_render_default(default)}"
        for name, (hint, default) in fields_of(one).items()
        if name not in names
    ]
    bare = ["*"] if options and not (own.kwonlyargs or own.vararg) else []
    free = [f"**{one.free}: Any"] if one.free else []
    lines = [*_split_arguments(shown), *bare, *options, *free]
    return [
        f"def {one.name}(",
        *(f"    {line}," for line in lines),
        ") -> None:",
        f'    """Take the arguments of `{one.name}`."""',
    ]


def _find_own(name: str, file: Path) -> ast.arguments:
    """Return the arguments that a function itself declares."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
    return found[-1].args


def _split_arguments(shown: str) -> list[str]:
    """Return the arguments of `a: X = (), *, b: dict[str, int]`, one by one."""
    found, depth = [""], 0
    for letter in shown:
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [_space_default(one.strip()) for one in found if one.strip()]


def _space_default(argument: str) -> str:
    name, equals, default = argument.rpartition("=")
    return f"{name} = {default}" if equals and ":" in name else argument


def _takes_file(hint: Any) -> bool:
    """Return whether an option's value may be a file."""
    option = find_option(hint)
    return option is not None and "FILE" in (option.metavar or "")


def _render(hint: Any, file: bool) -> str:
    if hasattr(hint, "__metadata__"):
        return _render(get_args(hint)[0], file)
    if get_origin(hint) in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(_render(one, file) for one in get_args(hint)))
    if get_origin(hint) is Literal:
        return f"Literal[{', '.join(map(_quote, get_args(hint)))}]"
    if get_origin(hint) is tuple:
        one = _render(get_args(hint)[0], file)
        return f"{one} | Iterable[{one}]"
    if get_origin(hint) is Mapping:
        return f"Mapping[{', '.join(_render(one, False) for one in get_args(hint))}]"
    if get_origin(hint) is not None:
        return "Listener"
    if hint is Path or (hint is str and file):
        return "str | Path"
    return "None" if hint is type(None) else "Any" if hint is Any else str(hint.__name__)


def _render_default(default: Any) -> str:
    return _quote(default) if isinstance(default, str) else repr(default)


def _quote(value: str) -> str:
    return f'"{value}"'


if __name__ == "__main__":
    for each in PAGES:
        each.path.write_text(page(each), encoding="utf-8")

"""edgen/api/objects/argument_types.py: the types of keyword arguments, from the structs that declare them.

python -m tests.argument_types     writes it anew (make docs)
"""

from __future__ import annotations

import re
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from edgen.asking.options import AnnotateOptions, AskOptions, CandidateOptions, PairOptions
from edgen.selection.options import SelectOptions
from tests import ROOT

PAGE = ROOT / "edgen" / "api" / "objects" / "argument_types.py"
# The struct of each type, and the fields that are arguments of another form.
STRUCTS: dict[str, tuple[type[msgspec.Struct], tuple[str, ...]]] = {
    "AskArguments": (AskOptions, ("overrides",)),
    "PairArguments": (PairOptions, ("by", "against", "people", "overrides")),
    "AnnotateArguments": (AnnotateOptions, ("labels", "overrides")),
    "CandidateArguments": (CandidateOptions, ("write", "overrides")),
    "SelectArguments": (SelectOptions, ("where", "cap")),
}
_HEAD = '''"""The keyword arguments of functions that ask about a run. `make docs` writes this file, from the structs in
edgen/asking/options.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypedDict

from edgen.core.events import Listener


class QuestionArguments(TypedDict, total=False):
    """The listeners, the consent for keys, and the keys of the job that count for questions."""

    progress: bool | None  # show progress; None: on a terminal and in a notebook
    on_event: Listener | None  # called with every event, in the caller's thread
    trust_hosts: Iterable[str]  # in the form of --trust-host
    backends: Any  # keys of the job, which replace its own
    limits: Any  # likewise
    batch: Any  # likewise
    asks: Any  # likewise
    forms: Any  # likewise
'''


def page() -> str:
    """The text of the file."""
    lines = [_HEAD.rstrip()]
    for name, (kind, without) in STRUCTS.items():
        above = next((one for one, (base, _) in STRUCTS.items() if base is kind.__base__), None)
        bases = above or ("QuestionArguments" if name == "AskArguments" else "TypedDict")
        lines += [
            "",
            "",
            f"class {name}({bases}, total=False):",
            f'    """The arguments of `{kind.__name__}`."""',
            "",
        ]
        hints = get_type_hints(kind, include_extras=True)
        inherited = STRUCTS[above][0].__struct_fields__ if above else ()
        for field in kind.__struct_fields__:
            if field not in (*without, *inherited):
                lines.append(
                    f"    {field}: {_render(hints[field], _takes_file(hints[field]))}{_comment(hints[field])}"
                )
    return "\n".join(lines) + "\n"


def _comment(hint: Any) -> str:
    """The first sentence of an option's help, as a comment."""
    helps = [one.description for one in getattr(hint, "__metadata__", ()) if isinstance(one, msgspec.Meta)]
    return f"  # {re.split(r'(?<=[.]) ', helps[0])[0]}" if helps and helps[0] else ""


def _takes_file(hint: Any) -> bool:
    """Whether an option's value may be a file."""
    metas = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, msgspec.Meta) and one.extra]
    return any("FILE" in (one.extra["metavar"] or "") for one in metas)


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
    if hint is Path or (hint is str and file):
        return "str | Path"
    return "None" if hint is type(None) else str(hint.__name__)


def _quote(value: str) -> str:
    return f'"{value}"'


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""The names of classes and functions: one name has one meaning, and a function says what it does.

Names that edgen promises to its users stay; they are listed here with the reason.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest

from tests import ROOT
from tests.source_imports import walk_statements

# Names of two or more public packages, each with the meaning that its users expect.
SHARED_CLASSES = {
    "Conversation": "of a run (edgen), of a plugin (edgen.plugin), of an environment (edgen.env)",
    "ConversationEnv": "the environment of one of two trainers, which look for it in different modules",
    "Job": "as Python users write it (edgen), and as a plugin gets it (edgen.plugin)",
}

# Irregular participles. "cut", "put", "read", "set" and "split" are imperatives, too.
IRREGULAR = frozenset(
    [
        "become",
        "begun",
        "bound",
        "broken",
        "brought",
        "built",
        "caught",
        "chosen",
        "dealt",
        "done",
        "drawn",
        "driven",
        "fed",
        "felt",
        "found",
        "given",
        "gone",
        "grown",
        "heard",
        "held",
        "hidden",
        "kept",
        "known",
        "laid",
        "left",
        "made",
        "meant",
        "met",
        "paid",
        "said",
        "seen",
        "sent",
        "shown",
        "sold",
        "sought",
        "spent",
        "spoken",
        "stood",
        "sworn",
        "taken",
        "taught",
        "thought",
        "thrown",
        "told",
        "torn",
        "understood",
        "won",
        "worn",
        "written",
    ]
)
# Imperatives that end like a participle.
IMPERATIVES = frozenset(["embed", "exceed", "feed", "heed", "need", "proceed", "seed", "shed"])

# Functions that keep a participle: path, function, reason. `*` is any class or path.
CONTRACT = {
    "accepted": "a plugin's result (Settled)",
    "compared": "what a plugin declares (Measure)",
    "expected": "what a plugin declares (Protocol)",
    "given": "what a plugin declares (BackendConfig)",
    "left_out": "what a plugin declares (FormatOptions)",
    "located": "what a plugin declares (BackendConfig)",
    "noted_job": "what a plugin calls (RunReader)",
    "named": "what a plugin calls (RunReader)",
    "rejected": "a plugin's result (Settled)",
    "shown": "what a plugin declares (Measure)",
    "simulated": "what a plugin declares (Protocol)",
    "simulated_labels": "what a plugin declares (Protocol)",
    "trained": "what a plugin declares (Protocol)",
    "written": "what a plugin declares (Family)",
    "_seen": "what a plugin's conversation calls (Session)",
    "done": "as of a Future, which stands in the same places",
    "begun_arms": "what a user of Python reads (Status)",
    "heard": "public in edgen.env",
    "unified_diff": "the term of the standard library",
    "numbered": "the name of a fault that users read",
    "bulleted": "the name of a fault that users read",
    "named_roles": "the name of a fault that users read",
}


class Definition(NamedTuple):
    """A class or function of a source file."""

    name: str
    line: int
    is_class: bool
    is_attribute: bool  # read like one, so that its name may be an adjective


def read_definitions(source: str) -> list[Definition]:
    """Return all classes and functions of a source text, also those within others."""
    return [
        Definition(
            node.name,
            node.lineno,
            isinstance(node, ast.ClassDef),
            not isinstance(node, ast.ClassDef) and _is_attribute(node),
        )
        for node in walk_statements(ast.parse(source))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]


@cache
def _sources() -> dict[str, list[Definition]]:
    return {
        path.relative_to(ROOT).as_posix(): read_definitions(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / "edgen").rglob("*.py"))
    }


def find_shared_classes(sources: dict[str, list[Definition]]) -> dict[str, set[str]]:
    """Return the public class names that stand in several files, with these."""
    files: defaultdict[str, set[str]] = defaultdict(set)
    for path, definitions in sources.items():
        for one in definitions:
            if one.is_class and not one.name.startswith("_"):
                files[one.name].add(path)
    return {name: where for name, where in files.items() if len(where) > 1}


def is_participle(name: str) -> bool:
    """Return whether a function's name begins with a participle."""
    word = name.strip("_").split("_")[0]
    return word in IRREGULAR or (word.endswith("ed") and word not in IMPERATIVES)


def _is_attribute(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is read like an attribute, whose name may be an adjective."""
    decorators = [ast.unparse(one).partition("(")[0].rpartition(".")[2] for one in node.decorator_list]
    return any(one in ("property", "cached_property", "setter") for one in decorators)


def find_participles(sources: dict[str, list[Definition]]) -> Iterator[str]:
    """Yield the functions whose names begin with a participle, as path:line name."""
    for path, definitions in sources.items():
        for one in definitions:
            known = one.is_class or one.name in CONTRACT or one.is_attribute
            if is_participle(one.name) and not known:
                yield f"{path}:{one.line} {one.name}"


def test_one_class_name_has_one_meaning() -> None:
    found = find_shared_classes(_sources())
    assert {name: sorted(where) for name, where in found.items() if name not in SHARED_CLASSES} == {}


def test_functions_do_not_begin_with_a_participle() -> None:
    assert list(find_participles(_sources())) == []


@pytest.mark.parametrize("names", [SHARED_CLASSES, CONTRACT], ids=["classes", "functions"])
def test_no_exception_is_left_over(names: dict[str, str]) -> None:
    there = {one.name for definitions in _sources().values() for one in definitions}
    assert names.keys() - there == set()


def test_planted_names_are_found() -> None:
    text = "class Thing: ...\n\ndef _told(): ...\n\ndef seed(): ...\n\ndef list_kept(): ...\n"
    planted = {name: read_definitions(text) for name in ("a.py", "b.py")}
    assert find_shared_classes(planted) == {"Thing": {"a.py", "b.py"}}
    assert list(find_participles(planted)) == ["a.py:3 _told", "b.py:3 _told"]

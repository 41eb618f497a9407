"""The English of docstrings and comments: first words, and phrases that the style guide replaces."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT
from tests.source_imports import walk_statements

# A docstring says what a thing is or does, not "What …", "Whether …" or "Those that …".
QUESTIONS = frozenset(
    [
        "How",
        "Nobody",
        "None",
        "Nothing",
        "That",
        "Those",
        "What",
        "Whatever",
        "When",
        "Where",
        "Whether",
        "Which",
        "Who",
        "Whoever",
        "Whose",
        "Why",
    ]
)
# That of an attribute may say "Whether …", "How many …", "Why …" or "None if …".
OF_ATTRIBUTES = QUESTIONS - {"How", "None", "Whether", "Why"}
# The docstring of a function begins with an imperative.
NOT_IMPERATIVE = frozenset(
    [
        "A",
        "All",
        "An",
        "Any",
        "As",
        "At",
        "Both",
        "By",
        "Each",
        "Every",
        "He",
        "If",
        "In",
        "Is",
        "It",
        "Its",
        "Like",
        "No",
        "Of",
        "On",
        "One",
        "Only",
        "Or",
        "Raises",
        "Returns",
        "Says",
        "She",
        "So",
        "Some",
        "The",
        "There",
        "These",
        "They",
        "This",
        "To",
        "Two",
        "With",
        "Yields",
        "You",
    ]
)
# Each old phrase, with the words that replace it.
PHRASES = {
    r"behind": "after",
    r"beside": "next to, with",
    r"mend(s|ed|ing)?": "fix",
    r"to the (letter|byte)": "exactly, byte for byte",
    r"(?<!there )(?<!there has )(is|are|was|were) (?-i:none)": "is invalid, is unsupported, is missing",
    r"tells?|told": "report, print, state",
    r"not there": "missing",
    r"go(es)? on with": "continue, resume",
    r"asked for again": "retried",
    r"whoever|whatever": "the caller, the reader, any",
    r"(is|are) to be": "must be, will be",
    r"nobody's|somebody's": "name the owner",
}
OLD = {re.compile(rf"\b({old})\b", re.IGNORECASE): new for old, new in PHRASES.items()}
CODE = re.compile(r"`[^`]*`|\"[^\"]*\"")  # names and quotations are not prose
COLUMNS = 110


def read_docstrings(source: str) -> Iterator[tuple[int, str, frozenset[str]]]:
    """Yield (line, text, forbidden first words) of every docstring, including those of attributes."""
    for node in walk_statements(ast.parse(source)):
        body = getattr(node, "body", None)
        for place, statement in enumerate(body if isinstance(body, list) else ()):
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield statement.lineno, text, forbidden_first_words(node, is_first=place == 0)


def forbidden_first_words(node: ast.AST, is_first: bool) -> frozenset[str]:
    """Return the words that must not begin a docstring in the body of a node."""
    if not is_first:
        return OF_ATTRIBUTES
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
        return QUESTIONS  # the docstring of a test may state the rule that it proves
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not any(
        "property" in ast.unparse(decorator) for decorator in node.decorator_list
    ):
        return QUESTIONS | NOT_IMPERATIVE
    return QUESTIONS


def read_comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of every comment, if any may be at fault: to split a file into tokens takes long."""
    if not any(map(may_be_at_fault, source.splitlines())):
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#: ")


def may_be_at_fault(line: str) -> bool:
    """Return whether a line holds an old phrase after one of its hash signs: each may begin a comment."""
    _, *tails = line.split("#")
    comments = ("#".join(tails[place:]) for place in range(len(tails)))
    return any(next(find_phrases(comment), None) for comment in comments)


def find_phrases(text: str) -> Iterator[tuple[str, str]]:
    """Yield each old phrase in a text, with the words that replace it."""
    words = " ".join(CODE.sub("", text).split())
    for old, new in OLD.items():
        if found := old.search(words):
            yield found[0], new


def find_faults(source: str) -> list[str]:
    """Return a sentence for each docstring or comment of a module that breaks a rule."""
    faults = []
    prose = list(read_comments(source))
    for line, text, forbidden in read_docstrings(source):
        prose.append((line, text))
        first = (re.match(r"\s*([A-Za-z]+)", text) or [""] * 2)[1]
        if first in forbidden:
            faults.append(f"line {line}: begins with {first!r}")
        if any(len(one) > COLUMNS for one in source.splitlines()[line - 1 : line + text.count("\n")]):
            faults.append(f"line {line}: longer than {COLUMNS} columns")
    for line, text in prose:
        faults += [f"line {line}: says {found!r} ({new})" for found, new in find_phrases(text)]
    return faults


def list_packages() -> list[str]:
    """Return the packages of edgen, the folders of tests, and the other folders with Python files."""
    parts = [
        path.relative_to(ROOT).as_posix()
        for folder in (ROOT / "edgen", ROOT / "tests")
        for path in folder.iterdir()
        if path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py")))
    ]
    return sorted([*parts, "bench", "docs", "examples"])


@pytest.mark.parametrize("package", list_packages())
def test_english(package: str) -> None:
    place = ROOT / package
    files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
    assert files
    faults = [f"{path.relative_to(ROOT)}, {fault}" for path in files for fault in find_faults(read(path))]
    assert not faults, "\n".join(faults)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("planted", "fault"),
    [
        ('"""What a plan is."""', "line 1: begins with 'What'"),
        ('class A:\n    """Whether it fits."""', "line 2: begins with 'Whether'"),
        ('class A:\n    x: int\n    """What it holds."""', "line 3: begins with 'What'"),
        ('def f():\n    """The plan of a job."""', "line 2: begins with 'The'"),
        ('def f():\n    """Returns the plan."""', "line 2: begins with 'Returns'"),
        ('def f():\n    """Return None if the id is none."""', "line 2: says 'is none'"),
        ("x = 1  # kept to the letter", "line 1: says 'to the letter'"),
        ("# The file beside it.\nx = 1", "line 1: says 'beside'"),
        (f'def f():\n    """Return {"x" * 110}."""', "line 2: longer than 110 columns"),
    ],
)
def test_it_finds_a_planted_sentence(planted: str, fault: str) -> None:
    assert [found for found in find_faults(planted) if found.startswith(fault)], find_faults(planted)


@pytest.mark.parametrize(
    "sound",
    [
        '"""The plan of a job, besides its arms."""',
        'class A:\n    x: int\n    """How often it runs; None if there is none."""',
        'class A:\n    @property\n    def name(self):\n        """The name of the plan."""',
        'def f():\n    """Return the text between `beside` and "to the letter"."""',
        "x = 'What stands beside it is none'  # a value, not prose",
    ],
)
def test_it_accepts_sound_sentences(sound: str) -> None:
    assert not find_faults(sound)

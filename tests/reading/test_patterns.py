"""Patterns that every supported Python matches the same way."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import edgen
from edgen.core.text import compile_later

pytestmark = pytest.mark.unit
CODE = Path(edgen.__file__).parent
# `)*+`, `)?+`, `){0,7}+`, also with the doubled braces of an f-string.
POSSESSIVE_GROUP = re.compile(r"\)(?:\{\{?\d+,\d*\}\}?|[*+?])\+")


def test_no_pattern_repeats_a_group_possessively() -> None:
    # Python before 3.11.5 matches such a group wrongly where an attempt at it ends half way (cpython's issue
    # 106052); an atomic group, `(?>(?:…)*)`, means the same and is matched correctly.
    found = [
        f"{path.relative_to(CODE)}:{number}: {line.strip()}"
        for path in sorted(CODE.rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if POSSESSIVE_GROUP.search(line)
    ]
    assert found == []


def test_every_pattern_that_is_compiled_at_first_use_is_valid() -> None:
    found = 0
    for path in sorted(CODE.rglob("*.py")):
        if "compile_later(" not in path.read_text("utf-8"):
            continue
        module = importlib.import_module(".".join(path.relative_to(CODE.parent).with_suffix("").parts))
        late = [value for value in vars(module).values() if type(value) is type(compile_later(""))]
        found += len(late)
        for pattern in late:
            assert isinstance(pattern.pattern, str)  # it is compiled now
    assert found > 250

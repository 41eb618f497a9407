"""Large tables of small cases as one test.

`each` is `pytest.mark.parametrize` for more than forty cases that each take less time than pytest needs per
test. A smaller table takes `parametrize`, so that `-k` selects its cases.

All cases are run; the test fails once and names every case that failed. The cases share the test's fixtures,
so a test that changes something takes `parametrize`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

SHOWN = 20  # the most failed cases that are named


def each(
    names: str | Sequence[str], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for each case. `names` and `cases` are those of `parametrize`."""
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    values = [case if len(keys) > 1 else (case,) for case in cases]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def whole(*arguments: Any, **fixtures: Any) -> None:
            failed = []
            for case in values:
                try:
                    test(*arguments, **fixtures, **dict(zip(keys, case, strict=True)))
                except (Exception, pytest.fail.Exception) as problem:  # noqa: BLE001 - it is named with its case
                    failed.append(f"{case!r:.200}: {type(problem).__name__}: {problem}")
            if failed:
                more = f"\n… and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
                listed = "\n".join(failed[:SHOWN])
                pytest.fail(f"{len(failed)} of {len(values)} cases fail:\n{listed}{more}", pytrace=False)

        signature = inspect.signature(test)
        kept = [one for name, one in signature.parameters.items() if name not in keys]
        whole.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return whole

    return decorate


def named(names: str, /, **cases: Any) -> pytest.MarkDecorator:
    """`parametrize` with the cases' names as their ids."""
    return pytest.mark.parametrize(
        [name.strip() for name in names.split(",")], [*cases.values()], ids=[*cases]
    )

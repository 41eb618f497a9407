"""`each` runs every case and names the failed ones."""

from __future__ import annotations

import pytest

from tests.cases import each


def test_every_case_is_run_and_each_that_fails_is_named() -> None:
    seen = []

    @each("number", [1, 2])
    @each(("text", "size"), [("a", 1), ("bb", 1), ("ccc", 1)])
    def check(text: str, size: int, number: int) -> None:
        seen.append((number, text))
        assert len(text) == size

    with pytest.raises(pytest.fail.Exception, match="2 of 2 cases fail") as failed:
        check()
    assert seen == [(number, text) for number in (1, 2) for text in ("a", "bb", "ccc")]
    assert "'bb'" in str(failed.value)
    assert "'ccc'" in str(failed.value)


@each("text", ["a", "b"])
def test_fixtures_come_beside_the_cases(text: str, request: pytest.FixtureRequest) -> None:
    assert request.node.name == "test_fixtures_come_beside_the_cases"

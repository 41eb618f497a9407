"""Forms of forum posts: the reader accepts every answer that fits its form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from edgen.core.forms import Form
from edgen.domains.forum.post import make_post_form, read_post
from tests.form_checks import check_names_without_bounds, check_what_fits_is_read, check_words

pytestmark = pytest.mark.unit

CASES: dict[str, tuple[Form, Callable[[str], Any]]] = {
    "question": (make_post_form((), titled=True), lambda text: read_post(text, "User", (), titled=True)),
    "post": (
        make_post_form([1, 3], may_accept=True),
        lambda text: read_post(text, "User", [1, 3], may_accept=True),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_fits_a_form_is_read(name: str) -> None:
    check_what_fits_is_read(*CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_a_form_without_bounds_has_the_same_names(name: str) -> None:
    check_names_without_bounds(CASES[name][0])


@pytest.mark.parametrize("name", CASES)
def test_its_words_name_each_property(name: str) -> None:
    check_words(CASES[name][0])

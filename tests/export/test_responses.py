"""Formats that have no row for a single response."""

from __future__ import annotations

import pytest

from edgen.core.errors import UsageError
from edgen.export.options import ExportOptions
from tests.export.runs import FORMATS


def test_a_format_without_single_responses_says_so() -> None:
    for name in ("trl-sft", "hf", "mtpo"):
        with pytest.raises(UsageError, match="has no prompt of a single response; leave --actions out"):
            FORMATS[name].check(ExportOptions(actions="labels"))
    with pytest.raises(UsageError, match="trl-dpo has no row for each response"):
        FORMATS["trl-dpo"].check(ExportOptions(alternatives=True))
    with pytest.raises(UsageError, match="actions: 'x' is not one of labels, wanted"):
        ExportOptions(actions="x").check()  # type: ignore[arg-type]

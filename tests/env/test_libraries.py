"""Adapters without their libraries, as in this environment."""

from __future__ import annotations

import importlib
import importlib.util

import pytest

from edgen.core.errors import UsageError


@pytest.mark.parametrize(
    ("adapter", "module", "distribution"),
    [
        ("verifiers", "verifiers", "verifiers"),
        ("skyrl", "skyrl_gym", "skyrl-gym"),
        ("openenv", "openenv", "openenv-core"),
    ],
)
def test_a_library_that_is_missing_is_named_with_the_command(
    adapter: str, module: str, distribution: str
) -> None:
    if importlib.util.find_spec(module) is not None:
        pytest.skip(f"{distribution} is installed")
    with pytest.raises(
        UsageError, match=f"{distribution} cannot be used here: No module named.*pip install {distribution}"
    ):
        importlib.import_module(f"edgen.env.{adapter}")

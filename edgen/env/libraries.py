"""The libraries of the adapters. edgen installs none of them."""

from __future__ import annotations

from edgen.core.errors import UsageError


def make_not_installed_error(distribution: str, missing: ImportError) -> UsageError:
    """Return the error of an adapter whose library, or a dependency of it, is missing."""
    return UsageError(
        f"{distribution} cannot be used here: {missing}. Install it: pip install {distribution}"
    )

"""The libraries that adapters are made for. None of them comes with edgen."""

from __future__ import annotations

from edgen.core.errors import UsageError


def not_installed(distribution: str, missing: ImportError) -> UsageError:
    """The error of an adapter whose library is not there, or misses something itself."""
    return UsageError(
        f"{distribution} cannot be used here: {missing}. Install it: pip install {distribution}"
    )

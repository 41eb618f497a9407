"""`edgen` and `python -m edgen`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    from edgen.cli.app import app
    from edgen.cli.errors import guarded

    sys.exit(guarded(lambda: app(prog_name="edgen")))


if __name__ == "__main__":
    main()

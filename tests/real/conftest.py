"""Tests that ask a real model: `make test-real` installs it and runs them; `make test` leaves them out."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("EDGEN_REAL") else ["test_*.py"]

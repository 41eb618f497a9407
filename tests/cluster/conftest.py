"""These tests start a Ray cluster: `make test-cluster` installs Ray and runs them; `make test` leaves them out."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("EDGEN_CLUSTER") else ["test_*.py"]

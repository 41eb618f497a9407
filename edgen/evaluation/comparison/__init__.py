"""Comparison of the arms of an experiment over their common scenarios: metrics, intervals, caveats."""

from edgen.core.extras import require_extra

require_extra("analysis", "Comparisons")

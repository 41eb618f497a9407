"""Comparison of the arms of an experiment over their common scenarios: metrics, intervals, limits."""

from edgen.core.extras import require_extra

require_extra("analysis", "Comparisons")

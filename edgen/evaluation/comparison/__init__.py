"""Arms of an experiment compared over the scenarios they share: metrics, intervals, what cannot be told."""

from edgen.core.extras import require_extra

require_extra("analysis", "Comparisons")

"""The one home of statistics: intervals, tests, agreement, resampling."""

from edgen.core.extras import require_extra

require_extra("analysis", "Statistics")

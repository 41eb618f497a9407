"""An import guard: without numpy, the error names the extra to install. `quantiles` does not need it."""

from edgen.core.extras import require_extra

require_extra("analysis", "Statistics")

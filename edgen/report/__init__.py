"""Reports of finished runs, as one self-contained page."""

from edgen.core.extras import require_extra

require_extra("analysis", "Reports")

"""Statistics for measures and scores: intervals over scenarios, tests, agreement of labels.

    from edgen.plugin.statistics import bootstrap, interval

Second level (see `edgen.plugin`): these names may change in any minor release; CHANGELOG.md lists changes.

Estimate, share: a number with its interval. Distribution, summarize_counts, summarize_shares: mean, deviation
and quantiles. ShareCount, Floats, difference_of_means: values clustered by scenario. FEWEST_SCENARIOS: fewest
scenarios for an interval. bootstrap, interval, ratios: resampling of scenarios. round_number: six digits, the
same on any machine. SIGNIFICANT, fisher, holm, log_factorials: tests, and corrections for many tests.
spearman, superiority, RankTest: ranks. agreement, krippendorff, masi: agreement of labels. LabelCounts,
LabelFigures: labels against true ones.
"""

from __future__ import annotations

from edgen.stats.agreement import agreement as agreement
from edgen.stats.agreement import krippendorff as krippendorff
from edgen.stats.agreement import masi as masi
from edgen.stats.distributions import Distribution as Distribution
from edgen.stats.distributions import summarize_counts as summarize_counts
from edgen.stats.distributions import summarize_shares as summarize_shares
from edgen.stats.intervals import FEWEST_SCENARIOS as FEWEST_SCENARIOS
from edgen.stats.intervals import Estimate as Estimate
from edgen.stats.intervals import Floats as Floats
from edgen.stats.intervals import ShareCount as ShareCount
from edgen.stats.intervals import difference_of_means as difference_of_means
from edgen.stats.intervals import share as share
from edgen.stats.label_figures import LabelCounts as LabelCounts
from edgen.stats.label_figures import LabelFigures as LabelFigures
from edgen.stats.ranks import RankTest as RankTest
from edgen.stats.ranks import spearman as spearman
from edgen.stats.ranks import superiority as superiority
from edgen.stats.resampling import bootstrap as bootstrap
from edgen.stats.resampling import interval as interval
from edgen.stats.resampling import ratios as ratios
from edgen.stats.resampling import round_number as round_number
from edgen.stats.significance import SIGNIFICANT as SIGNIFICANT
from edgen.stats.significance import fisher as fisher
from edgen.stats.significance import holm as holm
from edgen.stats.significance import log_factorials as log_factorials

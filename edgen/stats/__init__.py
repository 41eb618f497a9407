"""All statistics: intervals, tests, agreement, resampling. All but `quantiles` need the extra `analysis`."""

"""The version of edgen, and what its distribution is called."""

__version__ = "0.1.0"
DISTRIBUTION = "edgen-dialogues"

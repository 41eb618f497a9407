"""The version of edgen, and the name of its distribution."""

__version__ = "0.1.0"
DISTRIBUTION = "edgen-dialogues"

"""The version of edgen."""

__version__ = "0.1.0"

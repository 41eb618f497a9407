"""edgen generates synthetic teacher-student conversations with language models."""

__version__ = "0.1.0"

"""The tests of edgen: a mirror of `edgen/`, and what they share."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]  # of the checkout

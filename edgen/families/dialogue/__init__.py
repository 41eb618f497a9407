"""Conversations of any roles about scenarios of any dimensions."""

from __future__ import annotations

from edgen.families.dialogue.record import DIALOGUE

__all__ = ["DIALOGUE"]

"""Parts that the pages of `edgen web` and the report share: a style sheet, and macros of Jinja."""

from __future__ import annotations

from pathlib import Path

PAGE_PARTS = Path(__file__).parent
STYLE = PAGE_PARTS / "components.css"

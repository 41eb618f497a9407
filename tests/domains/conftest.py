"""Fixtures that tests of several domains use."""

from __future__ import annotations

from tests.cli.conftest import command as command

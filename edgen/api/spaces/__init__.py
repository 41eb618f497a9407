"""Preference spaces: looked at, grown, and made of what released files were drawn from."""

"""A campaign of kills, signals and disks that fail: `python -m bench kills`.

This file imports nothing: each process that is disturbed reads it.
"""

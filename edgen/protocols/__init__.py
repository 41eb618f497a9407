"""Whatever asks models, one file a kind; the registry finds one by its name.

A kind is imported when it is asked for: what it reads with takes its time to load.
"""

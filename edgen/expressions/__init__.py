"""Expressions over one conversation, as `edgen select` and a job's gates take them: a small language of its
own, in which nothing can be called but a few functions, and nothing runs that is not meant here."""

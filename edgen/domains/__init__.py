"""Domains: kinds of conversations, one folder each. The rest of edgen imports none of them: it finds their
protocols, families, measures, formats, commands and sections of space files by entry points."""

"""edgen's features as functions: typed arguments in, typed values out.

They raise EdgenError, print nothing, read no terminal and install no signal handlers. Events during the work
go to the listeners of a `Control`, which also answers the questions that only a person can answer.
"""

"""What edgen does, as functions: typed arguments in, typed values out.

They raise EdgenError, print nothing, read no terminal and install no signal handlers. What happens meanwhile
goes to the listeners of a `Control`, which also answers the questions that only a person can answer.
"""

"""A language model that is none: rehearsal, tests and benchmarks without a key or a network.

What it writes follows from the prompt and a seed and is marked as simulated wherever it goes; it is
not for training. `edgen.simulator.server` offers the same over HTTP.
"""

"""A simulated language model for rehearsal, tests and benchmarks without a key or a network.

Its text follows from the prompt and a seed and is marked as simulated everywhere; it is not for training.
`edgen.simulator.service.server` offers the same over HTTP.
"""

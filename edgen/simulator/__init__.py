"""A simulated language model for rehearsals, tests and benchmarks, without a key or a network.

Its text follows from the prompt and a seed, and is marked as simulated everywhere. It is not for training.
`edgen.simulator.service.server` serves it over HTTP.
"""

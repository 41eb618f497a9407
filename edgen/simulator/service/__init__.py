"""The simulator as a server: wire formats of services, and their batches."""

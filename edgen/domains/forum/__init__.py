"""Forums: several members post about a question, each at its own times."""

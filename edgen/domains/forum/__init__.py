"""Forums: several members post about a question, each at a time of its own."""

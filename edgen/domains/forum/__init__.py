"""Forums: several members post about a question, at times of their own."""

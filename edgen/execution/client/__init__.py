"""A model call: its key, admission, budget and retries."""

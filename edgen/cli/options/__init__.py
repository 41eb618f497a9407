"""Arguments and options of the commands."""

"""Who hears what happens while a command works: a terminal, a log for a machine, a metrics file."""

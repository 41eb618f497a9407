"""The command line: `app` holds it together, each other file is one command or what commands share."""

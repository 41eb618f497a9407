"""The command line: `app` combines the commands; each other file is one command, or a part that several
share."""

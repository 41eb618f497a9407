"""Local pages over runs: `edgen web`.

server.py    the application: routes, start and stop
guard.py     who may see what: the owner's key and cookie, Host and Origin, headers
sources.py   the runs that are shown, and the index of each, built in the background
pages.py     the reading pages' routes: runs.py, browse.py, conversation.py; answers.py: what they share
rendering.py templates, and text that is safe to show
"""

"""Local pages over runs: `edgen web`.

server.py        the application: routes, start and stop
runs.py          the list of runs; browse.py, conversation.py: other reading pages; answers.py: shared parts
guard.py         who may see what: the owner's key and cookie, Host and Origin, headers
sources.py       the runs that are shown, and the index of each, built in the background
rendering.py     templates, and text that is safe to show
invited_pages.py kinds of tasks for invited people; people.py is the owner's page, progress.py its figures
tasks.py         units given out to people one at a time; answering.py the pages on which they answer
voting.py        the task of voting on pairs; labelling.py that of labels
inviting.py      what the command line sets up before the pages are served
"""

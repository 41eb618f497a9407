"""Local pages over runs: `edgen web`.

server.py        the application: routes, start and stop
runs.py          the list of runs; browse.py, conversation.py: other reading pages; answers.py: shared parts
guard.py         permissions: the owner's key and cookie, Host and Origin, headers
sources.py       the runs that are shown, and the index of each, built in the background
rendering.py     templates, and escaped text
people/          pages of invited people: voting.py, labelling.py and play.py are kinds of tasks, tasks.py
                 gives out their units, answering.py shows them; owner_page.py and progress.py are the
                 owner's; inviting.py sets up tasks from the command line, before the pages are served
"""

"""Everything that asks a model about a run or a file, on one engine.

An asker is a class: which units it asks about, the prompt and the reader of each, the record that its ledger
keeps. The engine:

    asker.py          the base classes of askers
    units.py          askers about the turns or the conversations of a run
    answering.py      the answering parties: the job, the backends and the scheduler
    ledger_paths.py   ledgers in a run's folder, or next to a file
    task_loop.py      the loop: all missing answers are requested, under supervision
    call_estimates.py the calls that this would take, for --dry-run
    runner.py         one start of an asker: open, ask, estimate
    declared.py       askers that one class declares, without code of their own for starts and results

The other modules are askers: comparisons, rollouts, annotators, writers, space_growth. Those of domains are
in their folders.
"""

"""Everything that asks a model about a run or a file, on one engine.

An asker is a class: the units that it asks about, a generator that asks about one and reads the answers, the
record that its ledger keeps. A start opens what answers it. The engine:

    asker.py          the base classes of askers
    units.py          askers about the turns or the conversations of a run
    answering.py      the answering parties: the job, the backends and the scheduler
    ledger_paths.py   ledgers in a run's folder, or next to a file
    runner.py         starts, and the loop: all missing answers are requested, under supervision
    call_estimates.py the calls that this would take, for --dry-run
    use_estimates.py  the tokens and the money, where the asker guesses its answers
    declared.py       askers that one class declares, without code of their own for starts and results
    registered.py     askers by name, of edgen and of other packages

The other modules are askers: comparisons, rollouts, annotators, writers, space_growth. Those of domains are
in their folders.
"""

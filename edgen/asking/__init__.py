"""One engine for everything that asks a model about a run or a file.

An asker is a class. It declares its units, a generator that asks about one unit and reads the answers, and
the record for its ledger. A start opens the backends that answer. The engine:

    asker.py          the base classes of askers
    units.py          askers about the turns or the conversations of a run
    answering.py      the answering parties: the job, the backends and the scheduler
    ledger_paths.py   ledgers in a run's folder, or next to a file
    runner.py         starts, and the loop: all missing answers are requested, under supervision
    call_estimates.py the number of calls, for --dry-run
    use_estimates.py  the tokens and the cost, for askers that guess their answers
    declared.py       askers that one class declares, without code of their own for starts and results
    registered.py     askers by name, of edgen and of other packages

The other modules are askers: comparisons, rollouts, annotators, writers, space_growth. Askers of a domain are
in its folder.
"""

"""Scheduler on a Ray cluster: the head owns all that must be unique, and workers do the work.

The walk of one conversation:

1. The head takes the next unit of the plan and gives it to a worker, with the unit's stored replies.
2. The worker starts the task's generator, answers from the stored replies, and sends its first open request.
3. The head reserves budget, waits for its turn at the service (rates, window, circuit), and notes the call
   (`units`: without a task, if the call waits for nothing else).
4. The head permits a worker this one attempt; workers make no call by themselves.
5. If its sign of life that the permit answers is at most `LEASE` seconds old, it makes the attempt and sends
   the raw reply. So a worker that was frozen makes none, although permits may wait in its connection.
6. The head settles the call, stores the reply with the others of that moment, and waits until they are on
   its disk. Only now do they count.
7. Meanwhile the worker's generator continues, and the worker sends the next request, or the outcome with the
   finished record. The head takes it after step 6; steps 3 to 7 repeat.
8. The head stores the outcome, and takes the next unit.
9. A worker that dies, or is silent for `PATIENCE` seconds, is replaced. Its calls fail and are retried; its
   units start again elsewhere, from the stored replies.
10. A head that dies takes the workers with it. The same command resumes from the ledger, as for a local run.

So a permit is a lease of one request with its tokens and money: no cap is exceeded, even if nodes are lost.
"""

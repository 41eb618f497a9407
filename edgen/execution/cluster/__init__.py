"""A scheduler on a Ray cluster: the head owns everything that must be unique, and workers do the work.

The steps of one conversation:

1. The head takes the next unit of the plan and gives it to a worker, with the unit's stored replies.
2. The worker starts the task's generator, answers from the stored replies, and sends its first open request.
3. The head reserves budget, waits for its turn at the service (rates, window, circuit), and notes the call.
   A call that waits only for its turn needs no task (`units`).
4. The head sends the worker a permit for one attempt; workers make no call without a permit.
5. A permit states the worker's last sign of life that the head received. If it is at most `LEASE` seconds
   old, the worker makes the attempt and sends the raw reply. So a worker that was frozen makes no late calls,
   even if permits wait in its connection.
6. The head settles the call, stores the reply with others that arrived at the same time, and waits until they
   are on its disk. Only then do they count.
7. Meanwhile the worker's generator continues, and the worker sends the next request, or the outcome with the
   finished record. The head takes it after step 6; steps 3 to 7 repeat.
8. The head stores the outcome, and takes the next unit.
9. A worker that dies, or is silent for `PATIENCE` seconds, is replaced. Its calls fail and are retried; its
   units start again elsewhere, from the stored replies.
10. If the head dies, so do its workers. The same command resumes from the ledger, as for a local run.

So a permit is a lease of one request with its tokens and money: no cap is exceeded, even if nodes are lost.
"""

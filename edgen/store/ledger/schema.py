"""The ledger's tables, as SQL; SQLite keeps each statement byte for byte.

A call is addressed by (scenario, task, step, attempt). `task` distinguishes the results of one scenario: a
number or a text, which the ledger compares and does not interpret. Numbers come before texts. Rows of
`replies` are never updated. `outcomes` and `records` are derived from it and may be made again. Each row of
these three has a checksum (`checked_reader`).

If the calls of a ledger request log probabilities or are answered by people, it has an additional table,
`logprobs`, from their first session on. Other ledgers do not change.
"""

from __future__ import annotations

APPLICATION_ID = 0x65646765  # "edge"
VERSION = 6
UPGRADED = 5  # of ledgers with a trigger that counts replies; their next session removes it
SCENARIOS = 1 << 42  # no job has more
PAGE = 8192  # bytes; with 4,096, a record of 2 to 4 KB would take a page of its own
PICO = 1e12  # picodollars in a US dollar

_TOKENS = ("prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens")
TABLES = """
CREATE TABLE replies (
    scenario INTEGER NOT NULL, task NOT NULL, step INTEGER NOT NULL, attempt INTEGER NOT NULL,
    key BLOB NOT NULL,              -- sha256 over all that shaped the answer
    finish_reason TEXT NOT NULL, refusal TEXT, model TEXT, simulated INTEGER NOT NULL,
    prompt_tokens INTEGER, completion_tokens INTEGER,
    cache_read_tokens INTEGER, cache_write_tokens INTEGER,  -- of the prompt's
    answered_at REAL NOT NULL,      -- seconds since the epoch
    latency REAL NOT NULL,          -- seconds, of the attempt that succeeded
    tries INTEGER NOT NULL,         -- network attempts
    charged_tokens INTEGER NOT NULL, -- against a budget: as counted, or the most it can have been
    cost_usd REAL,                  -- by the price that the job gave; NULL without one
    text TEXT NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE UNIQUE INDEX replies_by_call ON replies (scenario, task, step, attempt, key);
CREATE TABLE outcomes (
    scenario INTEGER NOT NULL, task NOT NULL,
    fingerprint TEXT NOT NULL,      -- of the job that this outcome was made under
    status TEXT NOT NULL, reason TEXT, detail TEXT,
    grp INTEGER NOT NULL,           -- hash of the group that the split keeps together
    reply_key BLOB,                 -- the last reply that was read for it
    checksum INTEGER NOT NULL,
    PRIMARY KEY (scenario, task)
) WITHOUT ROWID;
CREATE TABLE records (
    scenario INTEGER NOT NULL, task NOT NULL, data BLOB NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY (scenario, task)
);
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    started_at REAL NOT NULL, ended_at REAL, pid INTEGER NOT NULL, host TEXT NOT NULL, edgen TEXT NOT NULL,
    made INTEGER NOT NULL DEFAULT 0, replayed INTEGER NOT NULL DEFAULT 0, retried INTEGER NOT NULL DEFAULT 0,
    prompt_tokens INTEGER NOT NULL DEFAULT 0, completion_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens INTEGER NOT NULL DEFAULT 0, cache_write_tokens INTEGER NOT NULL DEFAULT 0,
    cost_usd REAL, state TEXT NOT NULL DEFAULT 'running', message TEXT,
    lost_tokens INTEGER NOT NULL DEFAULT 0, lost_usd REAL NOT NULL DEFAULT 0  -- calls charged, no answer kept
);
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE batches (  -- see ledger/outstanding
    id INTEGER PRIMARY KEY, state TEXT NOT NULL, fingerprint TEXT NOT NULL, backend TEXT NOT NULL,
    token TEXT NOT NULL, round INTEGER NOT NULL, requests INTEGER NOT NULL, file TEXT NOT NULL,
    file_id TEXT, remote_id TEXT, made_at REAL NOT NULL, sent_at REAL, message TEXT
);
CREATE TABLE outstanding (
    id INTEGER PRIMARY KEY,
    batch INTEGER,                  -- NULL: a call by itself
    scenario INTEGER NOT NULL, task NOT NULL, step INTEGER NOT NULL, attempt INTEGER NOT NULL, key BLOB NOT NULL,
    tokens INTEGER NOT NULL, usd REAL NOT NULL  -- the most it can take
);
CREATE TABLE returned (  -- requests of batches that came back without a reply
    scenario INTEGER NOT NULL, task NOT NULL, step INTEGER NOT NULL, attempt INTEGER NOT NULL, key BLOB NOT NULL,
    kind TEXT, detail TEXT,         -- the failure, NULL where there is none that counts
    tries INTEGER NOT NULL,         -- failures in a row
    PRIMARY KEY (scenario, task, step, attempt, key)
) WITHOUT ROWID;
CREATE INDEX outstanding_by_call ON outstanding (scenario, step, attempt);
CREATE INDEX outstanding_by_batch ON outstanding (batch, id);
"""

# In a ledger of layout 5
TRIGGER = """\
CREATE TRIGGER replies_counted AFTER INSERT ON replies BEGIN  -- sums stay at 2**62: from 2**63 on they were floats
    UPDATE sessions SET
        made = made + 1,
        prompt_tokens = MIN(prompt_tokens + IFNULL(NEW.prompt_tokens, 0), 4611686018427387904),
        completion_tokens = MIN(completion_tokens + IFNULL(NEW.completion_tokens, 0), 4611686018427387904),
        cache_read_tokens = MIN(cache_read_tokens + IFNULL(NEW.cache_read_tokens, 0), 4611686018427387904),
        cache_write_tokens = MIN(cache_write_tokens + IFNULL(NEW.cache_write_tokens, 0), 4611686018427387904),
        cost_usd = CASE WHEN NEW.cost_usd IS NULL THEN cost_usd ELSE IFNULL(cost_usd, 0) + NEW.cost_usd END
    WHERE id = (SELECT MAX(id) FROM sessions);
END"""
UPGRADE = ("DROP TRIGGER replies_counted", f"PRAGMA user_version = {VERSION}")

# Counts the replies since this row for the last session. Sums stop at 2**62, since SQLite makes floats of
# sums from 2**63 on.
COUNT_REPLIES = """\
UPDATE sessions SET
    made = sessions.made + new.made,
    {sums},
    cost_usd = CASE WHEN new.priced THEN IFNULL(sessions.cost_usd, 0) + new.cost_usd ELSE sessions.cost_usd END
FROM (
    SELECT COUNT(*) AS made, {totals}, COUNT(cost_usd) AS priced, TOTAL(cost_usd) AS cost_usd
    FROM replies WHERE rowid > ?
) AS new
WHERE id = (SELECT MAX(id) FROM sessions)""".format(  # noqa: S608 - ours
    sums=",\n    ".join(f"{name} = MIN(sessions.{name} + new.{name}, {1 << 62})" for name in _TOKENS),
    totals=", ".join(f"CAST(MIN(TOTAL({name}), {1 << 62}) AS INTEGER) AS {name}" for name in _TOKENS),
)

# The tokens of replies with log probabilities, and the times of people's answers: see ledger/reply_details.
LOGPROBS = """\
CREATE TABLE logprobs (
    scenario INTEGER NOT NULL, task NOT NULL, step INTEGER NOT NULL, attempt INTEGER NOT NULL, key BLOB NOT NULL,
    data BLOB NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY (scenario, task, step, attempt, key)
) WITHOUT ROWID"""

"""The shell: sockets, timers and threads around the pure rooms. All I/O of a node is driven here.

`serve` runs a node; `node` puts its parts together. The way of a message: `listener` →
`connection` → `dispatch` → `api/produce` → `partition` → (the log) → `turn` writes what arrived
together → `flusher` syncs → `partition` moves the high watermark → the parked answers go out.
`api/` has one file for each Kafka API; ApiVersions is derived from it. `groups/` drives the groups
room (append, park, apply), `subscriptions/` the queues room. Start with `turn`, then `api/produce`.
"""

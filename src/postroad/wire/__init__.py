"""Kafka's bytes: framing, record batches and the messages of each API. No I/O, no state of a broker.

`messages/` is generated (tools/generate_messages.py): one module for each API, the version an
argument. `batch` reads and patches the header of a record batch in place; `records` goes inside
one. `produce` and `fetch` are the hot path, written by hand, as are `share_fetch` and
`share_acknowledge` for queues, which need no more of a batch than `scan` says and send what
`excerpt` cuts out. Start with `framing`, then `batch`.
"""

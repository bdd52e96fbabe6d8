"""Kafka's bytes: framing, record batches and the messages of each API. No I/O, no state of a broker.

`messages/` is generated (tools/generate_messages.py): one module for each API, the version an
argument. `batch` reads and patches the header of a record batch in place; `records` goes inside
one. `produce` and `fetch` are the hot path, written by hand. Start with `framing`, then `batch`.
"""

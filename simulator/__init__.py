"""The deterministic simulator: real nodes and real clients in one process, on virtual time, from one seed.

Start reading at `world` (time and events), then `loop` and `process` (a process is an event loop), then what
a process runs on: `network`, `workers`, `disk`, `store`. `machine` puts these together. Nothing here is
imported by the product, and nothing global is patched: whatever a node or a client wants of the world outside
comes through its runtime (`postroad.broker.runtime`). The same seed and the same code give the same trace.
"""

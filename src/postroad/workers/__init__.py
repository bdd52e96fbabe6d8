"""The API for Python people: `import postroad` (`postroad.App`, `@app.worker`, `app.publish`, …).

A thin layer over `client`. A worker is a function that gets the messages of a subscription one by one; what
becomes of each is the function's end: it returned (accepted), raised (released: it comes again after a
backoff, and at last is a dead letter), raised `Retry` or `Reject`. Everything that lasts is kept by the
nodes.

Start with `app.py`. `worker.py` is what a decorator declares, `handler.py` runs the function for one
message, `runner.py` takes messages and keeps their locks, `backend.py` is the port to the cluster
(`kafka.py`, and `testing.workers` for tests). `publishing.py` and `payloads.py` make messages, `client.py`
is for code that calls instead of being called, `blocking.py` the same for code without an event loop.
"""

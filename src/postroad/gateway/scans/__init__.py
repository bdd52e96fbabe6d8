"""Scans of topics in a process beside the gateway, so that none of its other callers waits for them.

A batch that is unpacked and compared holds a loop for some ten milliseconds, and a filter over millions of
messages is thousands of those. So a gateway starts a helper with the first scan (`helpers.py`), asks it with
a frame on its standard input (`frames.py`), and lets it end when nobody has asked for a while. The helper
(`worker.py`) is a Kafka client of its own, and less urgent than everything else on its machine.

H1 A helper belongs to its gateway: when that ends, however it ends, its standard input does, and so does it.
H2 What it needs to log in comes by that pipe too: no secret stands in a command line or in an environment.
H3 It has one scan at a time. A caller who goes, and a scan that takes far too long, end the helper; the next
   scan has another one.
"""

from postroad.gateway.scans.helpers import Helpers

__all__ = ["Helpers"]

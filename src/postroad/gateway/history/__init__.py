"""What the nodes' figures were during the last hour and the last day, for charts without a Prometheus.

A gateway asks the nodes for their metrics every few seconds (`sampler.py`), sums them up by topic,
subscription, group and node (`reading.py`), and keeps them in rings of fixed size (`ring.py`). Nothing is
stored: a gateway that starts has no past. `rest/history.py` shows them.
"""

from postroad.gateway.history.ring import FINE_SLOTS, FINE_STEP_S, Ring
from postroad.gateway.history.sampler import History, context

__all__ = ["FINE_SLOTS", "FINE_STEP_S", "History", "Ring", "context"]

"""Push: messages go to whoever has asked for them, as soon as they arrive.

`/v1/subscriptions/{name}/stream` is a WebSocket: the client grants credit, gets messages, and says what
became of each. `/v1/topics/{topic}/tail` sends what is written to a topic as Server-Sent Events, for reading
only, and `/v1/events` sends figures that have changed.

Start reading at `websocket.py`, the edge, then `stream.py`, what happens on one connection. The frames are in
`json_frames.py` and `binary_frames.py`; `tail.py` and `events.py` are the others.
"""

from postroad.gateway.push.routes import routes

__all__ = ["routes"]

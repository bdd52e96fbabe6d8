"""The console: pages at `/console` on which people see and steer topics, subscriptions and the cluster.

Pages are made here, as HTML, from what endpoints of REST answer: a page calls the very endpoints that
programs use (`visit.py`), in the name of whoever looks at it, so it can show and do nothing that `/v1` could
not. Every change can be shown as the commands that would make it (`commands.py`).

`page.py` is how a page and its actions are declared, `forms.py` how an action asks for what it needs,
`layout.py` what stands around every page. While a page is open `live.py` makes it anew every two seconds
and sends what has changed. `sessions.py` knows browsers by a sealed cookie, `assets.py` serves scripts and
styles, `routes.py` puts it together. Start with `page.py`, then `pages/topics.py`.
"""

from postroad.gateway.console.routes import routes

__all__ = ["routes"]

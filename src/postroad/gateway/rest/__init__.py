"""REST: `/v1`, with its OpenAPI document at /openapi.json and a page to try it at /docs.

`endpoint.py` is how an endpoint is declared: by a handler with typed body, query and answer. Routes and the
document are both made from these declarations, so that neither can say what the other does not. `serving.py`
is what happens around a handler; `problems.py` is how errors are answered. The rest are the endpoints, a file
for each thing that they are about. Start with `topics.py`.
"""

from postroad.gateway.rest.routes import routes

__all__ = ["routes"]

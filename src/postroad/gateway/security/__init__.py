"""Who calls this gateway, and what the caller may do: the users and rules of the nodes, over HTTP.

Without `security.enabled` none of this is asked: everybody has an `Access` that allows everything, or what
an access key of the settings allows. With it each request is a user's (`identities.py`), and every action,
endpoint and stream declares what it needs (`rights.py`) and is refused before anything is done or joined
with what others ask for. Nodes keep the secrets: a gateway follows their rules (`following.py`) and asks
them for signing keys and whether somebody knows a password (`credentials.py`).

Start reading at `access.py`, then `rights.py`, `identities.py`.
"""

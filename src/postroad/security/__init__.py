"""Security: who somebody is, and what they may do.

One set of users and rules for every dialect: nodes ask this room, gateways do, and `postroad acl check`
does, so
all of them come to the same answer. `Rules` holds the ACLs and decides (`rules.py`); the words of a
decision are
in `resources.py` and `principals.py`. Who somebody is comes out of an exchange of SASL messages
(`sasl.py`), of
which SCRAM is the one that never sends a password (`scram.py`), or out of a token that somebody else has
signed (`tokens.py`, which needs a package that others do without). Machines have passwords, too, which are
derived from the cluster's master key (`master_key.py`).

The room is pure: chance and time are arguments. It knows no sockets, no requests, no store; the broker
keeps the store's users and ACLs, asks before it acts, and remembers at which revision it asked.

Start reading at `resources.py`, then `rules.py`, `scram.py`, `sasl.py`.
"""

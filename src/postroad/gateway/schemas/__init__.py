"""A schema registry: `/subjects`, `/schemas`, `/compatibility`, `/config` and `/mode`, as Confluent's
clients ask.

What is registered stands in the topic `__schemas`, so every gateway of a cluster answers alike and nothing
else has to run. `topic_log.py` follows the topic and writes to it; `registrar.py` decides with the state of
`postroad.schemas` and sees to it that what was decided holds. `subjects.py`, `ids.py` and `settings.py` are
the endpoints, declared as those of REST; `serving.py` answers them in the registry's own form."""

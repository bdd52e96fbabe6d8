"""Schemas: Avro, JSON Schema and Protobuf, what may follow what, and which are registered.

`schema.py` has a schema as it is written down, and parses it by its type into one of `avro.py`,
`json_schema.py` and `protobuf.py`. Each knows its canonical form, by which two texts are the same schema,
and says what in a newer one can't be read by an older one (`…_compatibility.py`); `compatibility.py` has the
levels. `registry.py` is the state of a registry: it decides which records to write, and is changed by
applying them.

The room is pure: it knows no topic, no request and no clock. The gateway keeps the records in a topic
(`gateway/schemas/`), and Spark reads messages by these schemas.

Start reading at `schema.py`, then `registry.py`.
"""

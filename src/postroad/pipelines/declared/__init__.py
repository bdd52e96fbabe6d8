"""Declared pipelines: topics to tables to tables to topics, as a TOML file says it (`postroad pipeline run`).

`declaration` is the file, read and checked before anything starts; `table_source` and `table_sink` make
tables the beginning and the end of a stream of Spark's; `step` is how each kind of step runs, `run` keeps
all of them running, and `status` is what each tells of itself, in files beside its checkpoint. Begin with
`declaration`.
"""

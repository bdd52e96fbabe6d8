"""Operators and sensors for Airflow; a resource, a sensor and assets for Dagster.

`airflow` and `dagster` are what users import, and the only modules that need those packages. What they share
is in `access` (where the cluster is, and who logs in), `waiting` (how many messages wait for a group or a
subscription) and `command` (the command `postroad` as a process of its own: pipelines need Spark, whose
packages and memory are not a scheduler's).
"""

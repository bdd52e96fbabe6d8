"""Postroad side by side with other brokers, on this machine, in the same minutes: `make bench`.

`logs` and `queues` say what is measured (`workload`: the words for it), `servers` how each broker is started,
`clients` builds the C programs in `c/` that drive them, `session` runs them, `runner` alternates between the
brokers, `results` holds what came out and `report` prints medians and ratios. `kafka_jars` finds or fetches
Apache Kafka. README.md says how to read the figures.
"""

"""Postroad side by side with other brokers, on this machine, in the same minutes: `make bench`.

`workloads` says what is measured, `servers` how each broker is started, `clients` builds the C programs
in `c/` that drive them, `runner` alternates between the brokers, `results` holds what came out and
`report` prints medians and ratios. `kafka_jars` finds or fetches Apache Kafka. README.md says how to read
the figures.
"""

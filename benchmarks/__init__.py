"""Postroad side by side with other brokers, on this machine, in the same minutes: `make bench`.

`logs`, `queues` and `gateway` say what is measured (`workload`: the words for it), `servers` and
`sqs_servers` how each broker is started (`peers`: all of them), `clients` builds the C programs in `c/` that
drive them, `session` runs them, `runner` alternates between the brokers, `results` holds what came out and
`report` prints medians and ratios. `kafka_jars`, `maven` and `moto` find or fetch what is compared. README.md
says how to read the figures.
"""

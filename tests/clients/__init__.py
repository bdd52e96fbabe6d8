"""Promises that clients written by others hold Postroad to.

Each test drives a stock client: confluent-kafka (librdkafka), aiokafka, kafka-python or kcat. They run
against a real node; with POSTROAD_TEST_BOOTSTRAP=host:port they run against that broker instead, so that
Apache Kafka itself can be asked whether a promise is Kafka's or only ours. `confluent.py`, `python_kafka.py`,
`wait.py` and `proxy.py` hold what several tests share.
"""

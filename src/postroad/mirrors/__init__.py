"""Topics of one cluster copied to another, for as long as both are there: `postroad mirror`.

A Kafka client and no more: Postroad or Apache Kafka on either side, no Spark. From the bottom: `origins`
tells where a message comes from, in its headers; `pairs` which offset of the source is which of the target,
and what a reader's position in the one is in the other; `notes` keeps that at the target. `partition` copies
one partition, each message once, over any number of kills; `topics`, `groups` and `subscriptions` bring
along what belongs to messages; `mirror` does all of it. Start with `partition`.
"""

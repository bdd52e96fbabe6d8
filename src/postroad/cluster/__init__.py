"""What the cluster is: its nodes, topics, configs and partition states, and who may change them.

All of it lives in the coordination store, a small strongly consistent key-value store. The way of
one change is always the same, on one node as on many:

    controller.create_topic(image, …)   decides, changes nothing      → compares and operations
    store.commit(compares, operations)  makes it durable, or refuses  → a revision, or None
    store.watch(…)                      tells every node              → events
    image.apply(events)                 the only thing that changes the image

Start reading at `store` (the port), then `image`, then `controller`; for replicas `partition_rules`, then
`leadership` (what a node decides), `reconciliation` (what the controller does) and `membership`. The port has
three adapters: `sqlite`, embedded in a node; `etcd`, for a cluster; `remote`, the store of another process,
which `store_server` serves. They and `identity`, the file that ties a data directory to its cluster, are the
places here that do I/O. `topic_config` and `group_config` are the registries of configs. Messages and
members of groups are none of this room's business.
"""

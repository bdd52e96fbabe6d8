"""The operating system, as ports and their plain adapters: time, threads, streams of bytes.

Whatever a node or a client wants of the world outside comes through here, through `log.disk` or through
`cluster.store`; the simulator puts its own in their place.
"""

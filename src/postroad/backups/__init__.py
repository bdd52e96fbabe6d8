"""Backups of a node or a cluster that goes on meanwhile: `postroad backup create | verify | restore | prune`.

Taking one is a Kafka client's work: committed batches are read from the nodes that lead them and stored as
they are. Restoring one writes a data directory, as a node would have left it.

`manifest` says what a backup holds and refuses what it can't; `plan` decides what a new backup takes over
from the last one; `keep` which backups a prune keeps; `batches` cuts and checks batches; `cut` decides what
belongs to one moment; `contents` turns what was in a cluster's store into that of one node. These are pure.
`target` is the port to where backups lie, with `directory` and `objects` behind it. `create`, `copying`,
`verify`, `restore` and `prune` are the shell; `marks` keeps a prune and a new backup apart.
Start with `manifest`, then `create`.
"""

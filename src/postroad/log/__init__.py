"""The store: one partition's batches in files, safe over a crash.

`partition_log` is the room's face and the place to start; then `segment` (one file of batches),
`index`, `scan`, `recovery`, and `disk`, the only file that touches the operating system. A batch is
bytes here from end to end: only compaction and look-ups by time see records. The room knows no
clock (time is an argument), no network, no thread of its own (jobs are handed to the caller, who runs
them in one), and nothing of topics, leaders or watermarks. Formats: docs/formats/.
"""

"""Promises under crashes, damaged files, hostile bytes and full disks.

Each test runs a real node in a process of its own and looks at it with clients that others wrote; `raw.py`
speaks the protocol byte by byte where a well-behaved client can't be made to misbehave.
"""

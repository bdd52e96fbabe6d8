"""Postroad: a distributed message queue. Start reading at ARCHITECTURE.md, then `broker/`."""

__version__ = "0.1.0"

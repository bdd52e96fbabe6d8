"""The command `postroad`: runs a node, and talks to one as any Kafka client would.

`root` lists the commands; each is a file of its own that is imported when it is called, and imports
what is heavy (asyncio, the client, rich) only inside, so that `postroad --help` stays quick. `session`
turns errors into messages and exit codes, `output` writes tables, plain text or JSON, `command` refuses
arguments that are no text, and `ending` is how the program ends. Start with `root`.
"""

from postroad.cli.root import main

__all__ = ["main"]

"""Processes of ours beside or below this one: started again when they die, gone when this one is.

A child's standard input is a pipe from here that nothing is written to: when it ends, so does the child, even
if this process was killed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from postroad.config.declaration import ENVIRONMENT_PREFIX

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0
WELL_AFTER_S: Final = 30.0  # one that lived so long gets the short pause again

log = logging.getLogger("postroad")


async def keep_running(name: str, run: Callable[[], Awaitable[int]]) -> None:
    """Start it again whenever it has ended, with pauses that grow, until this task is cancelled."""
    pause_s = FIRST_PAUSE_S
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        try:
            code = await run()
        except OSError as error:  # no memory or no process to be had
            log.error("%s can't be started: %s", name, error)
        else:
            log.error("%s ended with code %d; starting it again in %g s", name, code, pause_s)
        if loop.time() - began > WELL_AFTER_S:
            pause_s = FIRST_PAUSE_S
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


async def run_child(
    name: str,
    arguments: Sequence[str],
    settings: Mapping[str, str],
    stop_s: float,
    descriptors: Sequence[int] = (),
) -> int:
    """Run `postroad` with these arguments from its start to its end; its exit code. Raises OSError.

    `settings` are those of the child, as variables of its environment. When this task is cancelled the child
    is told to stop, and killed after `stop_s`.
    """
    # -P: a file called http.py where the node was started would else be run in the place of Python's own.
    # A session of its own: Ctrl-C in a terminal reaches this process, which ends all in order.
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-m", "postroad", *arguments),
        stdin=asyncio.subprocess.PIPE,
        pass_fds=descriptors,
        env=child_environment(os.environ, settings),
        start_new_session=True,
    )
    try:
        return await child.wait()
    except asyncio.CancelledError:
        await _end(name, child, stop_s)
        raise


def child_environment(ours: Mapping[str, str], settings: Mapping[str, str]) -> dict[str, str]:
    """What we were given but for our settings, and those of the child."""
    plain = {name: value for name, value in ours.items() if not name.startswith(ENVIRONMENT_PREFIX)}
    return {**plain, **settings}


async def _end(name: str, child: asyncio.subprocess.Process, stop_s: float) -> None:
    child.terminate()
    try:
        async with asyncio.timeout(stop_s):
            await child.wait()
    except TimeoutError:
        log.error("%s did not end within %g s and is killed", name, stop_s)
        child.kill()
        await child.wait()

"""Spark's errors in one line.

What one of our own tasks or commits raised comes back from Spark as text: an error class, a Python
traceback, and the JVM's stack around it. The line that people need is the last one of the traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from postroad.pipelines.errors import PipelineError

_OURS: Final = re.compile(r"^(?:\w+: )*postroad\.[\w.]+: (.+)$", re.MULTILINE)
_PYTHON: Final = re.compile(r"^((?:[a-zA-Z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt): .+)$", re.MULTILINE)
_CHARS_MAX: Final = 500


@contextmanager
def spark_failures() -> Iterator[None]:
    """Errors that Spark raises in the block become a PipelineError with the reason alone."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise PipelineError(reason(str(error))) from error


def reason(text: str) -> str:
    """Our own words where they are in it, then Python's, then the first line of Spark's."""
    for pattern in (_OURS, _PYTHON):
        if found := pattern.findall(text):
            return str(found[-1])
    first = next((line for line in text.splitlines() if line.strip()), "Spark gave no reason")
    return first.strip()[:_CHARS_MAX]

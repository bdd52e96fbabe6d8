"""Pipelines as an application: what spark-submit wants is a file.

    spark-submit --master spark://… SITE-PACKAGES/postroad/pipelines/__main__.py \\
        archive --topic orders --to /lake/orders --once

`python -m postroad.pipelines archive …` is `postroad pipeline archive …`.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    # A file that is run has its own directory first on the path, where `tables` and others are not meant.
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).parent]
    sys.argv[1:1] = ["pipeline"]
    runpy.run_module("postroad", run_name="__main__")

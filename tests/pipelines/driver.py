"""A driver that archives one topic in several formats at once until it is killed, as a program of its own.

`registry`: where the schemas of the values are, which become columns then; "": there are none.
"""

from __future__ import annotations

import os
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from postroad.pipelines.archive import ArchiveSettings, archive
from postroad.pipelines.session import session

ROWS_PER_BATCH = 50


def main(bootstrap: str, topic: str, home: str, registry: str, *formats: Any) -> None:
    config = {"spark.driver.memory": "1g", "spark.local.dir": f"{home}/local"}
    with session("driver", "local[2]", config) as spark, ThreadPoolExecutor(len(formats)) as threads:
        schemas = {"valueFormat": "avro", "schemaRegistry": registry} if registry else {}
        source = {"maxOffsetsPerTrigger": str(ROWS_PER_BATCH), **schemas}
        settings = partial(ArchiveSettings, bootstrap, [topic], every_s=0, source=source)
        running = [
            threads.submit(archive, spark, settings(str(Path(home) / name), format=name)) for name in formats
        ]
        for each in as_completed(running):  # one that fails is not to be overlooked beside the others
            if each.exception() is not None:
                traceback.print_exception(each.exception())
                os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Catalogues of Iceberg tables: one of their own in the table's directory, or one that others know.

What is given is a URL (`http://catalog:8181`, `sqlite:////lake/catalog.db`, `thrift://metastore:9083`), or
the name of a catalogue in pyiceberg's own settings (`~/.pyiceberg.yaml`, `PYICEBERG_CATALOG__NAME__…`),
where its type, token and credentials stand: Glue, Unity, Hive, any REST catalogue. To a URL the settings of
the name `postroad` are added.
"""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import quote

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.utils.config import Config

from postroad.pipelines.errors import PipelineError
from postroad.pipelines.tables.location import Location

OWN: Final = "catalog.db"
_NAMED: Final = "postroad"
_ENDPOINT: Final = "s3.endpoint"
_CUTS: Final = re.compile(r"[?#]")


def check_location(location: Location) -> None:
    """PipelineError where Iceberg's readers would look elsewhere."""
    if location.directory is not None and (found := _CUTS.search(str(location))):
        raise PipelineError(
            f"{location}: an Iceberg table can't lie in a directory with {found[0]} in its path, "
            "where readers take it for the end: choose another, or take --format delta or parquet"
        )


def has_catalog(location: Location, given: str) -> bool:
    return bool(given) or location.is_there(OWN)


def open_catalog(location: Location, given: str) -> Catalog:
    """PipelineError if there is no such catalogue, or none is given for a table in an object store."""
    if not given and location.directory is None:
        raise PipelineError(f"an Iceberg table at {location} needs a catalogue: name it with --catalog")
    try:
        if given and "://" not in given:
            return load_catalog(given, **_store(given))
        url = given or f"sqlite:///{quote(location.below(OWN))}"
        return load_catalog(_NAMED, uri=url, warehouse=location.literal_url, **_store(_NAMED))
    except ValueError as error:
        raise PipelineError(f"--catalog: {error}") from None


def _store(name: str) -> dict[str, str]:
    """Where S3 is, if that is said as for all others who use it: pyiceberg has a setting of its own, and
    where the catalogue of this name has it that one counts."""
    if _ENDPOINT in (Config().get_catalog_config(name) or {}):
        return {}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    return {_ENDPOINT: endpoint} if endpoint else {}

"""The records of a registry, as they stand in its topic: JSON keys and values.

    key {"type": "schema", "nonce": …}    value: a SchemaValue; a registration, perhaps one that came too late
    key {"type": "deletion", "nonce": …}  value: a DeletionValue; the version is deleted, and still readable
    key {"type": "id", "id": 7}           value: {}; the schema is gone, its id is not given out again
    key {"type": "config", "subject": …}  value: {"compatibility": …}; "" is what holds for all subjects
    key {"type": "mode", "subject": …}    value: {"mode": …}

The topic is compacted, so the order of what is left is all that may count. A registration has a key of its
own and never moves: of two that want the same version, or the same id for different schemas, the first in
the log holds, today and after any compaction. The one that lost is given a tombstone by its writer, or with
the next write of anybody. A version that is deleted for good takes its records with it, and those that had
lost to anybody go in the same batch, or they would win once it is gone.

What can't be read is passed over: a record can only add something, so the rest holds without it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from postroad.schemas.schema import Reference

SCHEMA, DELETION, ID, CONFIG, MODE = "schema", "deletion", "id", "config", "mode"


class RegistryRecord(NamedTuple):
    """`value` None: a tombstone."""

    key: bytes
    value: bytes | None


class RecordKey(msgspec.Struct, omit_defaults=True):
    type: str
    nonce: str = ""
    id: int = 0
    subject: str = ""


class SchemaValue(msgspec.Struct, frozen=True):
    """`digest` is the schema's identity (`schema.digest`)."""

    subject: str
    version: int
    id: int
    kind: str
    text: str
    digest: str
    references: tuple[Reference, ...] = ()


class DeletionValue(msgspec.Struct, frozen=True):
    subject: str
    version: int
    id: int


class SettingValue(msgspec.Struct, omit_defaults=True):
    compatibility: str = ""
    mode: str = ""


key_decoder: Final = msgspec.json.Decoder(RecordKey)
schema_decoder: Final = msgspec.json.Decoder(SchemaValue)
deletion_decoder: Final = msgspec.json.Decoder(DeletionValue)
setting_decoder: Final = msgspec.json.Decoder(SettingValue)


def write_key(type_: str, nonce: str = "", id_: int = 0, subject: str = "") -> bytes:
    return msgspec.json.encode(RecordKey(type_, nonce, id_, subject))


def write(value: msgspec.Struct) -> bytes:
    return msgspec.json.encode(value)

"""The bodies, queries and answers of several endpoints of the registry."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from postroad.errors import InvalidSchema, InvalidVersion, OperationNotPermitted, SchemaNotFound
from postroad.schemas.records import SchemaValue
from postroad.schemas.registry import VERSION_MAX
from postroad.schemas.schema import AVRO, Reference

LATEST: Final = "latest"


class SchemaText(Struct):
    """A schema, as clients send it. Data contracts (metadata, rule sets) are refused, not passed over."""

    schema: Annotated[str, Meta(description="Its text; for PROTOBUF also a FileDescriptorProto in base64.")]
    schemaType: Annotated[str | None, Meta(description="AVRO, if it is left out, JSON or PROTOBUF.")] = None  # noqa: N815
    references: list[Reference] | None = None
    metadata: Any = None
    ruleSet: Any = None  # noqa: N815
    id: int | None = None
    version: int | None = None

    def checked(self) -> tuple[str, str, tuple[Reference, ...]]:
        """Kind, text and references. Raises InvalidSchema, OperationNotPermitted."""
        if self.metadata or self.ruleSet:
            raise InvalidSchema("Metadata and rule sets are not supported.")
        if (self.id or -1) >= 0:
            raise OperationNotPermitted("Ids are given by the registry: importing is not supported.")
        return (self.schemaType or AVRO).upper(), self.schema, tuple(self.references or ())


class NoQuery(Struct):
    """Clients ask for things that not every registry has: what is not known is passed over."""


class Normalize(Struct):
    """Texts that differ in white space or order alone are the same schema with or without it."""

    normalize: bool = False


class LookUp(Struct):
    normalize: bool = False
    deleted: Annotated[bool, Meta(description="Also among versions that are deleted.")] = False
    format: Annotated[str, Meta(description="serialized: PROTOBUF as a FileDescriptorProto in base64.")] = ""


class Compare(Struct):
    normalize: bool = False
    verbose: Annotated[bool, Meta(description="With the reasons.")] = False


class Listing(Struct):
    deleted: Annotated[bool, Meta(description="Also those that are deleted.")] = False


class Reading(Struct):
    deleted: Annotated[bool, Meta(description="Also if it is deleted.")] = False
    format: Annotated[str, Meta(description="serialized: PROTOBUF as a FileDescriptorProto in base64.")] = ""


class Deleting(Struct):
    permanent: Annotated[
        bool, Meta(description="For good: what is deleted without it can still be read by its id.")
    ] = False


class RegisteredId(Struct):
    id: int
    version: int


class RegisteredSchema(Struct, omit_defaults=True):
    """A version of a subject. The type is left out for AVRO."""

    subject: str
    version: int
    id: int
    schema: str
    schemaType: str | None = None  # noqa: N815
    references: list[Reference] = []


class SchemaOfId(Struct, omit_defaults=True):
    """The schema that messages name by its id. The type is left out for AVRO."""

    schema: str
    schemaType: str | None = None  # noqa: N815
    references: list[Reference] = []


class SubjectVersion(Struct):
    subject: str
    version: int


class Verdict(Struct):
    is_compatible: bool
    messages: list[str] = []


def registered(value: SchemaValue, text: str) -> RegisteredSchema:
    return RegisteredSchema(
        value.subject, value.version, value.id, text, kind_of(value), list(value.references)
    )


def kind_of(value: SchemaValue) -> str | None:
    """As it is answered: AVRO is not said."""
    return None if value.kind == AVRO else value.kind


def version_number(text: str) -> int | None:
    """None: the latest. Raises InvalidVersion."""
    if text in (LATEST, "-1"):
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:20]) <= VERSION_MAX:
        raise InvalidVersion(
            f"The specified version '{text[:40]}' is not a valid version id. Allowed values are between "
            f'[1, 2^31-1] and the string "{LATEST}"'
        )
    return int(text)


def schema_id(text: str) -> int:
    """Raises SchemaNotFound: what is no number is the id of nothing."""
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        raise SchemaNotFound(f"Schema {text[:40]} not found")
    return int(text)


def raw(text: str) -> msgspec.Raw:
    """An Avro or JSON schema as it is; a .proto file as a string."""
    if text.lstrip()[:1] in ("{", "[", '"'):
        return msgspec.Raw(text)
    return msgspec.Raw(msgspec.json.encode(text))


def check_subject(name: str) -> str:
    """Raises InvalidSchema."""
    if not name.strip() or not name.isprintable():
        raise InvalidSchema("A subject's name is of characters that can be printed.")
    return name

"""Schemas by the ids that messages begin with.

An id shows nobody more than a subject does: it takes the right to describe the topic of one that has it.
Whoever may not hears the same as of an id that is not there.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from postroad.errors import SchemaNotFound
from postroad.gateway.rest.endpoint import Call, Nothing
from postroad.gateway.schemas import shapes
from postroad.gateway.schemas.declaring import endpoint
from postroad.gateway.schemas.serving import topic_of
from postroad.gateway.schemas.shapes import Listing, NoQuery, SchemaOfId, SubjectVersion
from postroad.gateway.security.rights import DESCRIBE, PUBLIC, Rights
from postroad.schemas.registry import Version
from postroad.schemas.schema import KINDS

BY_SUBJECT: Final = Rights(by_handler="Describe on the topic of a subject that has it")


class ById(Struct):
    format: Annotated[str, Meta(description="serialized: PROTOBUF as a FileDescriptorProto in base64.")] = ""
    subject: Annotated[str, Meta(description="Taken and not needed: an id is one schema everywhere.")] = ""


@endpoint("GET", "/schemas/types", "List the types of schemas.", PUBLIC)
async def list_types(call: Call[Nothing, NoQuery]) -> list[str]:
    return list(KINDS)


@endpoint("GET", "/schemas/ids/{id}", "Get the schema of an id.", BY_SUBJECT)
async def get_schema(call: Call[Nothing, ById]) -> SchemaOfId:
    schemas = call.gateway.schemas
    value = (await _shown(call))[0].value
    text = value.text
    if call.query.format:
        text = await schemas.text(await schemas.now(), value, call.query.format)
    return SchemaOfId(text, shapes.kind_of(value), list(value.references))


@endpoint("GET", "/schemas/ids/{id}/schema", "Get the text of the schema of an id.", BY_SUBJECT)
async def get_schema_text(call: Call[Nothing, ById]) -> msgspec.Raw:
    return shapes.raw((await get_schema.handler(call)).schema)


@endpoint("GET", "/schemas/ids/{id}/subjects", "List the subjects that have the schema.", BY_SUBJECT)
async def list_subjects_of_id(call: Call[Nothing, Listing]) -> list[str]:
    return sorted({each.subject for each in await _versions(call)})


@endpoint("GET", "/schemas/ids/{id}/versions", "List the versions that have the schema.", BY_SUBJECT)
async def list_versions_of_id(call: Call[Nothing, Listing]) -> list[SubjectVersion]:
    return await _versions(call)


@endpoint("GET", "/contexts", "List the contexts, of which there is one.", PUBLIC)
async def list_contexts(call: Call[Nothing, NoQuery]) -> list[str]:
    return ["."]


async def _versions(call: Call[Nothing, Listing]) -> list[SubjectVersion]:
    await call.gateway.schemas.now()
    found = [each for each in await _shown(call) if call.query.deleted or not each.is_deleted]
    return [SubjectVersion(each.value.subject, each.value.version) for each in found]


async def _shown(call: Call[Nothing, Any]) -> list[Version]:
    """Raises SchemaNotFound."""
    number = shapes.schema_id(call.path["id"])
    found = [
        each
        for each in await call.gateway.schemas.by_id(number)
        if call.access.may_topic(topic_of(each.value.subject), DESCRIBE)
    ]
    if not found:
        raise SchemaNotFound(f"Schema {number} not found")
    return found

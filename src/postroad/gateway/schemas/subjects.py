"""Subjects and their versions: registered, looked up, compared, deleted."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from postroad.gateway.rest.endpoint import Call, Nothing
from postroad.gateway.schemas import shapes
from postroad.gateway.schemas.declaring import endpoint
from postroad.gateway.schemas.serving import topic_of
from postroad.gateway.schemas.shapes import (
    Compare,
    Deleting,
    Listing,
    LookUp,
    Normalize,
    Reading,
    RegisteredId,
    RegisteredSchema,
    SchemaText,
    Verdict,
)
from postroad.gateway.security.rights import DELETE, DESCRIBE, WRITE, Rights


class Subjects(Struct):
    deleted: Annotated[bool, Meta(description="Also those that are deleted.")] = False
    deletedOnly: bool = False  # noqa: N815
    subjectPrefix: str = ""  # noqa: N815
    offset: Annotated[int, Meta(ge=0)] = 0
    limit: Annotated[int, Meta(description="Below 0: all.")] = -1


@endpoint("GET", "/subjects", "List subjects.", Rights(by_handler="those whose topics may be described"))
async def list_subjects(call: Call[Nothing, Subjects]) -> list[str]:
    query = call.query
    registry = await call.gateway.schemas.now()
    found = registry.subjects(query.deleted or query.deletedOnly)
    if query.deletedOnly:
        alive = {*registry.subjects()}
        found = [name for name in found if name not in alive]
    prefix = query.subjectPrefix.removeprefix(":*:")
    shown = [
        name for name in found if name.startswith(prefix) and call.access.may_topic(topic_of(name), DESCRIBE)
    ]
    return shown[query.offset :] if query.limit < 0 else shown[query.offset :][: query.limit]


@endpoint("GET", "/subjects/{subject}/versions", "List a subject's versions.", Rights(topic=DESCRIBE))
async def list_versions(call: Call[Nothing, Listing]) -> list[int]:
    registry = await call.gateway.schemas.now()
    return [each.value.version for each in registry.versions(call.path["subject"], call.query.deleted)]


@endpoint("POST", "/subjects/{subject}/versions", "Register a schema.", Rights(topic=WRITE))
async def register(call: Call[SchemaText, Normalize]) -> RegisteredId:
    """A schema that the subject has already keeps its version and its id; one that another subject has keeps
    its id. It must be compatible with earlier versions, as the subject's level says."""
    subject = shapes.check_subject(call.path["subject"])
    version = await call.gateway.schemas.register(subject, *call.body.checked())
    return RegisteredId(version.value.id, version.value.version)


@endpoint("POST", "/subjects/{subject}", "Find the version that is this schema.", Rights(topic=DESCRIBE))
async def look_up(call: Call[SchemaText, LookUp]) -> RegisteredSchema:
    schemas = call.gateway.schemas
    version = await schemas.lookup(call.path["subject"], *call.body.checked(), deleted=call.query.deleted)
    text = await schemas.text(await schemas.now(), version.value, call.query.format)
    return shapes.registered(version.value, text)


@endpoint("GET", "/subjects/{subject}/versions/{version}", "Get a version.", Rights(topic=DESCRIBE))
async def get_version(call: Call[Nothing, Reading]) -> RegisteredSchema:
    """`latest` is the last one."""
    schemas = call.gateway.schemas
    number = shapes.version_number(call.path["version"])
    registry = await schemas.now()
    found = registry.version(call.path["subject"], number, call.query.deleted)
    return shapes.registered(found.value, await schemas.text(registry, found.value, call.query.format))


@endpoint("GET", "/subjects/{subject}/versions/{version}/schema", "Get its text.", Rights(topic=DESCRIBE))
async def get_version_text(call: Call[Nothing, Reading]) -> msgspec.Raw:
    return shapes.raw((await get_version.handler(call)).schema)


@endpoint(
    "GET", "/subjects/{subject}/versions/{version}/referencedby", "List the ids of schemas that refer to it.",
    Rights(topic=DESCRIBE),
)  # fmt: skip
async def list_referencing(call: Call[Nothing, Listing]) -> list[int]:
    registry = await call.gateway.schemas.now()
    number = shapes.version_number(call.path["version"])
    found = registry.version(call.path["subject"], number, deleted=True).value
    referencing = registry.referencing(found.subject, found.version)
    return sorted({each.value.id for each in referencing if call.query.deleted or not each.is_deleted})


@endpoint("DELETE", "/subjects/{subject}", "Delete a subject.", Rights(topic=DELETE), admin=True)
async def delete_subject(call: Call[Nothing, Deleting]) -> list[int]:
    """The versions can still be read by their ids, unless it is permanent, which only what was deleted can
    be."""
    return await call.gateway.schemas.delete_subject(call.path["subject"], call.query.permanent)


@endpoint(
    "DELETE", "/subjects/{subject}/versions/{version}", "Delete a version.", Rights(topic=DELETE), admin=True
)
async def delete_version(call: Call[Nothing, Deleting]) -> int:
    number = shapes.version_number(call.path["version"])
    return await call.gateway.schemas.delete_version(call.path["subject"], number, call.query.permanent)


@endpoint(
    "POST", "/compatibility/subjects/{subject}/versions/{version}", "Compare a schema with a version.",
    Rights(topic=DESCRIBE),
)  # fmt: skip
async def compare_with_version(call: Call[SchemaText, Compare]) -> Verdict:
    """By the subject's level. Nothing is registered."""
    number = shapes.version_number(call.path["version"])
    reasons = await call.gateway.schemas.problems(
        call.path["subject"], *call.body.checked(), number=number, one=True
    )
    return Verdict(not reasons, reasons if call.query.verbose else [])


@endpoint(
    "POST", "/compatibility/subjects/{subject}/versions", "Compare a schema with those that it must fit.",
    Rights(topic=DESCRIBE),
)  # fmt: skip
async def compare(call: Call[SchemaText, Compare]) -> Verdict:
    """As registering it would. Nothing is registered."""
    reasons = await call.gateway.schemas.problems(
        call.path["subject"], *call.body.checked(), number=None, one=False
    )
    return Verdict(not reasons, reasons if call.query.verbose else [])

"""Compatibility levels and modes, of a subject and of all that have none of their own."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from postroad.errors import InvalidCompatibilityLevel, SubjectConfigNotFound, SubjectModeNotFound
from postroad.gateway.rest.endpoint import Call, Nothing
from postroad.gateway.schemas import shapes
from postroad.gateway.schemas.declaring import endpoint
from postroad.gateway.schemas.shapes import NoQuery
from postroad.gateway.security.rights import ALTER_CONFIGS, DESCRIBE_CONFIGS, Rights
from postroad.schemas import compatibility
from postroad.schemas.registry import EVERYWHERE, READWRITE


class ToGlobal(Struct):
    defaultToGlobal: Annotated[  # noqa: N815
        bool, Meta(description="What holds for it, if it has none of its own.")
    ] = False


class Forced(Struct):
    force: Annotated[bool, Meta(description="Taken and not needed.")] = False


class Level(Struct):
    compatibilityLevel: str  # noqa: N815


class NewLevel(Struct, omit_defaults=True):
    compatibility: str | None = None
    compatibilityLevel: str | None = None  # noqa: N815
    normalize: bool | None = None


class Mode(Struct):
    mode: str


@endpoint("GET", "/config", "Get the compatibility level of all.", Rights(cluster=DESCRIBE_CONFIGS))
async def get_level(call: Call[Nothing, NoQuery]) -> Level:
    return Level((await call.gateway.schemas.now()).level(EVERYWHERE))


@endpoint("PUT", "/config", "Set the compatibility level of all.", Rights(cluster=ALTER_CONFIGS), admin=True)
async def set_level(call: Call[NewLevel, NoQuery]) -> NewLevel:
    return await _set_level(call, EVERYWHERE)


@endpoint("DELETE", "/config", "Back to BACKWARD for all.", Rights(cluster=ALTER_CONFIGS), admin=True)
async def reset_level(call: Call[Nothing, NoQuery]) -> Level:
    await call.gateway.schemas.set_level(EVERYWHERE, None)
    return Level(compatibility.DEFAULT)


@endpoint("GET", "/config/{subject}", "Get a subject's compatibility level.", Rights(topic=DESCRIBE_CONFIGS))
async def get_level_of(call: Call[Nothing, ToGlobal]) -> Level:
    registry, subject = await call.gateway.schemas.now(), call.path["subject"]
    if subject not in registry.levels and not call.query.defaultToGlobal:
        raise _no_level(subject)
    return Level(registry.level(subject))


@endpoint(
    "PUT",
    "/config/{subject}",
    "Set a subject's compatibility level.",
    Rights(topic=ALTER_CONFIGS),
    admin=True,
)
async def set_level_of(call: Call[NewLevel, NoQuery]) -> NewLevel:
    return await _set_level(call, shapes.check_subject(call.path["subject"]))


@endpoint("DELETE", "/config/{subject}", "Back to the level of all.", Rights(topic=ALTER_CONFIGS), admin=True)
async def reset_level_of(call: Call[Nothing, NoQuery]) -> Level:
    registry, subject = await call.gateway.schemas.now(), call.path["subject"]
    before = registry.levels.get(subject)
    if before is None:
        raise _no_level(subject)
    await call.gateway.schemas.set_level(subject, None)
    return Level(before)


def _no_level(subject: str) -> SubjectConfigNotFound:
    return SubjectConfigNotFound(f"Subject '{subject}' does not have subject-level compatibility configured")


async def _set_level(call: Call[NewLevel, Any], subject: str) -> NewLevel:
    level = call.body.compatibility or call.body.compatibilityLevel
    if level is None:
        raise InvalidCompatibilityLevel("A compatibility level is needed.")
    await call.gateway.schemas.set_level(subject, compatibility.check_level(level))
    return NewLevel(level.upper())


@endpoint("GET", "/mode", "Get the mode of all.", Rights(cluster=DESCRIBE_CONFIGS))
async def get_mode(call: Call[Nothing, NoQuery]) -> Mode:
    return Mode((await call.gateway.schemas.now()).mode(EVERYWHERE))


@endpoint("PUT", "/mode", "Set the mode of all.", Rights(cluster=ALTER_CONFIGS), admin=True)
async def set_mode(call: Call[Mode, Forced]) -> Mode:
    """READWRITE or READONLY."""
    await call.gateway.schemas.set_mode(EVERYWHERE, call.body.mode)
    return call.body


@endpoint("GET", "/mode/{subject}", "Get a subject's mode.", Rights(topic=DESCRIBE_CONFIGS))
async def get_mode_of(call: Call[Nothing, ToGlobal]) -> Mode:
    registry, subject = await call.gateway.schemas.now(), call.path["subject"]
    if subject not in registry.modes and not call.query.defaultToGlobal:
        raise SubjectModeNotFound(f"Subject '{subject}' does not have subject-level mode configured")
    return Mode(registry.mode(subject))


@endpoint("PUT", "/mode/{subject}", "Set a subject's mode.", Rights(topic=ALTER_CONFIGS), admin=True)
async def set_mode_of(call: Call[Mode, Forced]) -> Mode:
    await call.gateway.schemas.set_mode(shapes.check_subject(call.path["subject"]), call.body.mode)
    return call.body


@endpoint("DELETE", "/mode/{subject}", "Back to the mode of all.", Rights(topic=ALTER_CONFIGS), admin=True)
async def reset_mode_of(call: Call[Nothing, NoQuery]) -> Mode:
    registry, subject = await call.gateway.schemas.now(), call.path["subject"]
    before = registry.modes.get(subject)
    if before is None:
        raise SubjectModeNotFound(f"Subject '{subject}' does not have subject-level mode configured")
    await call.gateway.schemas.set_mode(subject, None)
    return Mode(before or READWRITE)

"""`Registrar`: what clients ask of the registry, decided at its state of now and written to its topic.

Decisions of one gateway run one after the other. Against another gateway's the order of the topic decides:
who was slower finds after writing that its registration does not hold, and decides again.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

from postroad.client.client import Client
from postroad.errors import CoordinatorNotAvailable, IncompatibleSchema, InvalidMode, SchemaNotFound
from postroad.gateway.schemas.topic_log import TopicLog
from postroad.schemas import compatibility, schema
from postroad.schemas.records import SchemaValue
from postroad.schemas.registry import READONLY, READWRITE, Registry, Version
from postroad.schemas.schema import PROTOBUF, Parsed, Reference

TRIES: Final = 20  # against other gateways that register in the same subject at the same moment
IN_THREAD_BYTES: Final = 16 * 1024  # what takes longer to parse must not hold up the loop
PARSED_BYTES_MAX: Final = 8 * 1024 * 1024  # texts of schemas that are kept parsed


class Registrar:
    def __init__(self, client: Client) -> None:
        self._log = TopicLog(client)
        self._deciding = asyncio.Lock()
        self._parsed: OrderedDict[tuple[str, str, tuple[str, ...]], Parsed] = OrderedDict()
        self._parsed_bytes = 0

    async def close(self) -> None:
        await self._log.close()

    async def now(self) -> Registry:
        """The registry with all that any gateway has answered. Raises PostroadError."""
        return await self._log.caught_up()

    async def by_id(self, id_: int) -> list[Version]:
        """What an id stands for never changes, so what is known need not be asked for. Raises
        SchemaNotFound."""
        try:
            return self._log.registry.by_id(id_)
        except SchemaNotFound:
            return (await self.now()).by_id(id_)

    # --- schemas

    async def register(
        self, subject: str, kind: str, text: str, references: tuple[Reference, ...]
    ) -> Version:
        """The version that is this schema, registered if it was not. Raises IncompatibleSchema and
        SchemaErrors."""
        async with self._deciding:
            for _ in range(TRIES):
                registry = await self.now()
                parsed = await self._parse(kind, text, registry.referenced(references))
                digest = schema.digest(parsed, references)
                known = registry.lookup(subject, digest) if subject in registry.subjects() else None
                if known is not None:
                    return known
                reasons = await self._problems(registry, subject, parsed)
                if reasons:
                    raise IncompatibleSchema(
                        f"Schema being registered is incompatible with an earlier schema for subject "
                        f'"{subject}", details: {reasons}'
                    )
                nonce = uuid.uuid4().hex
                made = registry.register(subject, parsed.kind, parsed.text, references, digest, nonce)
                await self._log.write(made)
                version = self._log.registry.holds(nonce)
                if version is not None:
                    return version
        raise CoordinatorNotAvailable("Others register in this subject all the time: try again.")

    async def lookup(
        self, subject: str, kind: str, text: str, references: tuple[Reference, ...], deleted: bool
    ) -> Version:
        """Raises SubjectNotFound, SchemaNotFound, InvalidSchema."""
        registry = await self.now()
        registry.versions(subject, deleted)
        parsed = await self._parse(kind, text, registry.referenced(references))
        found = registry.lookup(subject, schema.digest(parsed, references), deleted)
        if found is None:
            raise SchemaNotFound("Schema not found")
        return found

    async def problems(
        self,
        subject: str,
        kind: str,
        text: str,
        references: tuple[Reference, ...],
        number: int | None,
        one: bool,
    ) -> list[str]:
        """Why the schema may not follow the version `number` (None: the latest), if it is about `one`; else
        those that the subject's level names. Raises SubjectNotFound, VersionNotFound, InvalidSchema."""
        registry = await self.now()
        parsed = await self._parse(kind, text, registry.referenced(references))
        if not one:
            return await self._problems(registry, subject, parsed)
        return await self._compared(registry, subject, parsed, [registry.version(subject, number)])

    async def _problems(self, registry: Registry, subject: str, parsed: Parsed) -> list[str]:
        earlier = registry.earlier(subject, registry.level(subject))
        return await self._compared(registry, subject, parsed, earlier)

    async def _compared(
        self, registry: Registry, subject: str, parsed: Parsed, versions: Sequence[Version]
    ) -> list[str]:
        level = registry.level(subject)
        if level == "NONE" or not versions:
            return []
        earlier = [
            (f"version {version.value.version}", await self.parsed(registry, version.value))
            for version in versions
        ]
        # A small schema, too, may take a second to compare.
        return await asyncio.to_thread(compatibility.problems, level, parsed, earlier)

    # --- deletions and settings

    async def delete_subject(self, subject: str, permanent: bool) -> list[int]:
        async with self._deciding:
            versions, made = (await self.now()).delete_subject(subject, permanent, uuid.uuid4().hex)
            await self._log.write(made)
            return versions

    async def delete_version(self, subject: str, number: int | None, permanent: bool) -> int:
        async with self._deciding:
            registry = await self.now()
            if number is None:
                number = registry.version(subject, None, deleted=permanent).value.version
            await self._log.write(registry.delete_version(subject, number, permanent, uuid.uuid4().hex))
            return number

    async def set_level(self, subject: str, level: str | None) -> None:
        async with self._deciding:
            await self._log.write((await self.now()).set_level(subject, level))

    async def set_mode(self, subject: str, mode: str | None) -> None:
        if mode not in (None, READWRITE, READONLY):
            raise InvalidMode(f"Invalid mode {mode!r}. Valid values are {READWRITE} and {READONLY}.")
        async with self._deciding:
            await self._log.write((await self.now()).set_mode(subject, mode))

    # --- parsing

    async def text(self, registry: Registry, value: SchemaValue, form: str) -> str:
        """The schema as it is answered; `serialized` is a Protobuf schema as clients in Python read it."""
        if value.kind != PROTOBUF or form != "serialized":
            return value.text
        name = (value.references and value.subject) or f"schema-{value.id}.proto"
        return schema.serialized(await self.parsed(registry, value), name)

    async def parsed(self, registry: Registry, value: SchemaValue) -> Parsed:
        return await self._parse(value.kind, value.text, registry.referenced(value.references))

    async def _parse(self, kind: str, text: str, references: Mapping[str, str]) -> Parsed:
        key = kind, text, tuple(f"{name}\0{referenced}" for name, referenced in references.items())
        found = self._parsed.get(key)
        if found is not None:
            self._parsed.move_to_end(key)
            return found
        size = len(text) + sum(map(len, key[2]))
        if size < IN_THREAD_BYTES:
            found = schema.parse(kind, text, references)
        else:
            found = await asyncio.to_thread(schema.parse, kind, text, references)
        if key not in self._parsed:
            self._parsed[key] = found
            self._parsed_bytes += size
        while self._parsed_bytes > PARSED_BYTES_MAX and len(self._parsed) > 1:
            gone, _ = self._parsed.popitem(last=False)
            self._parsed_bytes -= len(gone[1]) + sum(map(len, gone[2]))
        return found

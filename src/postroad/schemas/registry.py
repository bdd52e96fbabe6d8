"""`Registry`: the subjects, their versions and settings, as the records of its topic add up to.

    decide (`register` …) → records, nothing changed → written to the topic → `apply`, at every gateway

What `apply` makes of a record depends on the records before it and on nothing else, so all gateways agree,
whoever wrote first (`records.py`). Whoever decided looks after applying whether its registration holds
(`holds`), and decides again if another one was faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from postroad.errors import (
    InvalidSchema,
    OperationNotPermitted,
    ReferenceExists,
    SchemaNotFound,
    SubjectNotFound,
    SubjectNotSoftDeleted,
    SubjectSoftDeleted,
    VersionNotFound,
    VersionNotSoftDeleted,
    VersionSoftDeleted,
)
from postroad.schemas import compatibility, records
from postroad.schemas.records import DeletionValue, RegistryRecord, SchemaValue, SettingValue
from postroad.schemas.schema import REFERENCES_MAX, Reference

EVERYWHERE: Final = ""  # as a subject, in settings: all that have none of their own
READWRITE, READONLY = "READWRITE", "READONLY"
ID_MAX: Final = 2**31 - 1  # four bytes before each message, and clients take them for signed
VERSION_MAX: Final = 2**31 - 1

# Every gateway has all of it in memory, and whoever may write to a topic may register for it.
BYTES_MAX: Final = 256 * 1024 * 1024  # of all texts
SUBJECT_BYTES_MAX: Final = 16 * 1024 * 1024
SUBJECT_VERSIONS_MAX: Final = 10_000


class Version:
    """One registered version of a subject."""

    __slots__ = ("deletions", "key", "value")

    def __init__(self, key: bytes, value: SchemaValue) -> None:
        self.key = key
        self.value = value
        self.deletions: set[bytes] = set()  # the keys of the records that say so

    @property
    def is_deleted(self) -> bool:
        return bool(self.deletions)


class Registry:
    def __init__(self) -> None:
        self.levels: dict[str, str] = {}
        self.modes: dict[str, str] = {}
        self._subjects: dict[str, dict[int, Version]] = {}
        self._by_key: dict[bytes, Version] = {}
        self._by_id: dict[int, list[Version]] = {}
        self._by_digest: dict[str, int] = {}
        self._by_deletion: dict[bytes, Version] = {}
        self._referencing: dict[tuple[str, int], set[bytes]] = {}
        self._lost: dict[bytes, None] = {}  # registrations that came too late, and have no tombstone yet
        self._id_last = 0
        self._bytes: dict[str, int] = {}  # of the texts of each subject
        self._bytes_of_all = 0

    # --- what there is

    def subjects(self, deleted: bool = False) -> list[str]:
        return sorted(
            name
            for name, versions in self._subjects.items()
            if deleted or any(not version.is_deleted for version in versions.values())
        )

    def versions(self, subject: str, deleted: bool = False) -> list[Version]:
        """In order. Raises SubjectNotFound."""
        known = self._subjects.get(subject, {})
        found = [known[number] for number in sorted(known) if deleted or not known[number].is_deleted]
        if not found:
            raise SubjectNotFound(f"Subject '{subject}' not found.")
        return found

    def version(self, subject: str, number: int | None, deleted: bool = False) -> Version:
        """None: the latest. Raises SubjectNotFound, VersionNotFound."""
        found = self.versions(subject, deleted)
        if number is None:
            return found[-1]
        for version in found:
            if version.value.version == number:
                return version
        raise VersionNotFound(f"Version {number} not found.")

    def by_id(self, id_: int) -> list[Version]:
        """All versions that have the schema. Raises SchemaNotFound."""
        found = self._by_id.get(id_)
        if not found:
            raise SchemaNotFound(f"Schema {id_} not found")
        return sorted(found, key=lambda each: (each.value.subject, each.value.version))

    def lookup(self, subject: str, digest: str, deleted: bool = False) -> Version | None:
        """The version of the subject that is this schema. Raises SubjectNotFound."""
        for version in self.versions(subject, deleted):
            if version.value.digest == digest:
                return version
        return None

    def referencing(self, subject: str, version: int) -> list[Version]:
        """The versions that refer to it."""
        keys = self._referencing.get((subject, version), set())
        return sorted((self._by_key[key] for key in keys), key=lambda each: each.value.id)

    def referenced(self, references: Iterable[Reference]) -> dict[str, str]:
        """Texts by name, also of what they refer to in turn, each after those that it needs. Raises
        InvalidSchema."""
        found: dict[str, str] = {}
        self._collect(references, found, ())
        return found

    def _collect(
        self, references: Iterable[Reference], found: dict[str, str], path: tuple[tuple[str, int], ...]
    ) -> None:
        for reference in references:
            where = reference.subject, reference.version
            version = self._subjects.get(reference.subject, {}).get(reference.version)
            if version is None:
                raise InvalidSchema(
                    f"The reference {reference.name!r} leads to version {reference.version} of subject "
                    f"{reference.subject!r}, which does not exist."
                )
            if where in path:
                raise InvalidSchema(f"The reference {reference.name!r} leads back to itself.")
            if reference.name in found:
                continue
            if len(found) >= REFERENCES_MAX or len(path) >= 64:
                raise InvalidSchema(f"A schema may have {REFERENCES_MAX} references, 64 behind each other.")
            self._collect(version.value.references, found, (*path, where))
            found[reference.name] = version.value.text

    def level(self, subject: str) -> str:
        return self.levels.get(subject) or self.levels.get(EVERYWHERE, compatibility.DEFAULT)

    def mode(self, subject: str) -> str:
        return self.modes.get(subject) or self.modes.get(EVERYWHERE, READWRITE)

    def earlier(self, subject: str, level: str) -> list[Version]:
        """Those that a new schema is compared with; none for a new subject."""
        try:
            versions = self.versions(subject)
        except SubjectNotFound:
            return []
        return versions if compatibility.is_transitive(level) else versions[-1:]

    # --- decisions

    def register(
        self, subject: str, kind: str, text: str, references: tuple[Reference, ...], digest: str, nonce: str
    ) -> list[RegistryRecord]:
        """The next version of the subject. Raises OperationNotPermitted."""
        self._check_mode(subject)
        self._check_room(subject, len(text))
        id_ = self._by_digest.get(digest) or self._id_last + 1
        number = max(self._subjects.get(subject, {0: None})) + 1
        if id_ > ID_MAX or number > VERSION_MAX:
            raise OperationNotPermitted("There are no more numbers for schemas.")
        value = SchemaValue(subject, number, id_, kind, text, digest, references)
        return [*self._tombstones(), RegistryRecord(key_of(nonce), records.write(value))]

    def holds(self, nonce: str) -> Version | None:
        """What became of a registration that was applied; None: another one was faster."""
        return self._by_key.get(key_of(nonce))

    def delete_version(
        self, subject: str, number: int | None, permanent: bool, nonce: str
    ) -> list[RegistryRecord]:
        """Raises SubjectNotFound, VersionNotFound, VersionSoftDeleted, VersionNotSoftDeleted,
        ReferenceExists."""
        self._check_mode(subject)
        version = self.version(subject, number, deleted=True)
        if number is None and not permanent:
            version = self.version(subject, None)
        if permanent and not version.is_deleted:
            raise VersionNotSoftDeleted(
                f"Subject '{subject}' Version {version.value.version} was not deleted first before being "
                "permanently deleted"
            )
        if not permanent and version.is_deleted:
            raise VersionSoftDeleted(
                f"Subject '{subject}' Version {version.value.version} was soft deleted. "
                "Set permanent=true to delete permanently"
            )
        return self._deletion([version], permanent, nonce)

    def delete_subject(
        self, subject: str, permanent: bool, nonce: str
    ) -> tuple[list[int], list[RegistryRecord]]:
        """The versions that go, and the records. Raises SubjectNotFound, SubjectSoftDeleted,
        SubjectNotSoftDeleted, ReferenceExists."""
        self._check_mode(subject)
        found = self.versions(subject, deleted=True)
        alive = [version for version in found if not version.is_deleted]
        if permanent and alive:
            raise SubjectNotSoftDeleted(
                f"Subject '{subject}' was not deleted first before being permanently deleted"
            )
        if not permanent and not alive:
            raise SubjectSoftDeleted(
                f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently"
            )
        going = found if permanent else alive
        made = self._deletion(going, permanent, nonce)
        if not permanent:  # its settings go with it
            made += [RegistryRecord(records.write_key(records.CONFIG, subject=subject), None)] * (
                subject in self.levels
            )
            made += [RegistryRecord(records.write_key(records.MODE, subject=subject), None)] * (
                subject in self.modes
            )
        return [version.value.version for version in going], made

    def _deletion(self, going: list[Version], permanent: bool, nonce: str) -> list[RegistryRecord]:
        keys = {version.key for version in going}
        for version in going:
            others = [
                each
                for each in self.referencing(version.value.subject, version.value.version)
                if each.key not in keys and (permanent or not each.is_deleted)
            ]
            if others:
                value = others[0].value
                raise ReferenceExists(
                    f"One or more references exist to the schema {{subject={version.value.subject}, "
                    f"version={version.value.version}}}: subject {value.subject}, version {value.version}."
                )
        made = self._tombstones()
        for number, version in enumerate(going):
            value = version.value
            if not permanent:
                key = records.write_key(records.DELETION, f"{nonce}-{number}")
                about = DeletionValue(value.subject, value.version, value.id)
                made.append(RegistryRecord(key, records.write(about)))
                continue
            if all(each.key in keys for each in self._by_id[value.id]):
                made.append(RegistryRecord(records.write_key(records.ID, id_=value.id), b"{}"))
            made.append(RegistryRecord(version.key, None))
            made += [RegistryRecord(key, None) for key in sorted(version.deletions)]
        return made

    def set_level(self, subject: str, level: str | None) -> list[RegistryRecord]:
        """None: it has none of its own any more. Raises InvalidCompatibilityLevel."""
        value = None if level is None else records.write(SettingValue(compatibility.check_level(level)))
        return [RegistryRecord(records.write_key(records.CONFIG, subject=subject), value)]

    def set_mode(self, subject: str, mode: str | None) -> list[RegistryRecord]:
        value = None if mode is None else records.write(SettingValue(mode=mode))
        return [RegistryRecord(records.write_key(records.MODE, subject=subject), value)]

    def _check_mode(self, subject: str) -> None:
        if self.mode(subject) != READWRITE:
            raise OperationNotPermitted(f"Subject {subject} is in read-only mode")

    def _check_room(self, subject: str, size: int) -> None:
        if self._bytes_of_all + size > BYTES_MAX:
            raise OperationNotPermitted(f"The registry is full: its schemas have {BYTES_MAX} bytes at most.")
        if (
            len(self._subjects.get(subject, ())) >= SUBJECT_VERSIONS_MAX
            or self._bytes.get(subject, 0) + size > SUBJECT_BYTES_MAX
        ):
            raise OperationNotPermitted(
                f"Subject {subject} is full: it has {SUBJECT_VERSIONS_MAX} versions and {SUBJECT_BYTES_MAX} "
                "bytes at most. Deleting old versions with permanent=true makes room."
            )

    def _tombstones(self) -> list[RegistryRecord]:
        return [RegistryRecord(key, None) for key in self._lost]

    # --- applying

    def apply(self, key: bytes | None, value: bytes | None) -> bool:
        """Take a record of the topic. False: it can't be read, and was passed over."""
        try:
            read = records.key_decoder.decode(key or b"")
            if read.type == records.SCHEMA:
                self._apply_schema(
                    key or b"", None if value is None else records.schema_decoder.decode(value)
                )
            elif read.type == records.DELETION:
                self._apply_deletion(
                    key or b"", None if value is None else records.deletion_decoder.decode(value)
                )
            elif read.type == records.ID:
                self._id_last = max(self._id_last, read.id)
            elif read.type == records.CONFIG:
                found = records.setting_decoder.decode(value or b"{}").compatibility
                _set(self.levels, read.subject, found if found in compatibility.LEVELS else "")
            elif read.type == records.MODE:
                _set(self.modes, read.subject, records.setting_decoder.decode(value or b"{}").mode)
            else:
                return False
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return False
        return True

    def _apply_schema(self, key: bytes, value: SchemaValue | None) -> None:
        if value is None:
            self._lost.pop(key, None)
            version = self._by_key.pop(key, None)
            if version is not None:
                self._remove(version)
        elif key not in self._by_key:
            self._id_last = max(self._id_last, value.id)  # also if it lost: nobody else takes it now
            if self._is_free(value):
                self._add(Version(key, value))
            else:
                self._lost[key] = None

    def _is_free(self, value: SchemaValue) -> bool:
        same = self._by_id.get(value.id)
        return (
            value.version not in self._subjects.get(value.subject, {})
            and self._by_digest.get(value.digest, value.id) == value.id
            and (not same or same[0].value.digest == value.digest)
            and all(each.version in self._subjects.get(each.subject, {}) for each in value.references)
        )

    def _add(self, version: Version) -> None:
        value = version.value
        self._subjects.setdefault(value.subject, {})[value.version] = version
        self._by_key[version.key] = version
        self._by_id.setdefault(value.id, []).append(version)
        self._by_digest[value.digest] = value.id
        self._bytes[value.subject] = self._bytes.get(value.subject, 0) + len(value.text)
        self._bytes_of_all += len(value.text)
        for each in value.references:
            self._referencing.setdefault((each.subject, each.version), set()).add(version.key)

    def _remove(self, version: Version) -> None:
        value = version.value
        self._bytes_of_all -= len(value.text)
        self._bytes[value.subject] -= len(value.text)
        _drop(self._subjects, value.subject, lambda known: known.pop(value.version))
        if value.subject not in self._subjects:
            del self._bytes[value.subject]
        _drop(self._by_id, value.id, lambda known: known.remove(version))
        if value.id not in self._by_id:
            self._by_digest.pop(value.digest, None)
        for each in value.references:
            _drop(self._referencing, (each.subject, each.version), lambda known: known.discard(version.key))
        for key in version.deletions:
            self._by_deletion.pop(key, None)

    def _apply_deletion(self, key: bytes, value: DeletionValue | None) -> None:
        if value is None:
            version = self._by_deletion.pop(key, None)
            if version is not None:
                version.deletions.discard(key)
            return
        found = self._subjects.get(value.subject, {}).get(value.version)
        if found is not None and found.value.id == value.id:
            found.deletions.add(key)
            self._by_deletion[key] = found

    def check(self) -> None:
        """Asserts what must always hold."""
        numbers = [(version.value.subject, version.value.version) for version in self._by_key.values()]
        assert len({*numbers}) == len(numbers)
        for id_, versions in self._by_id.items():
            assert len({version.value.digest for version in versions}) == 1, "an id is one schema"
            assert self._by_digest[versions[0].value.digest] == id_, "a schema has one id"
            assert id_ <= self._id_last
        sizes = dict.fromkeys(self._subjects, 0)
        for version in self._by_key.values():
            sizes[version.value.subject] += len(version.value.text)
        assert self._bytes == sizes
        assert self._bytes_of_all == sum(sizes.values())


def key_of(nonce: str) -> bytes:
    return records.write_key(records.SCHEMA, nonce)


def _set(settings: dict[str, str], subject: str, value: str) -> None:
    if value:
        settings[subject] = value
    else:
        settings.pop(subject, None)


def _drop(tables: dict[Any, Any], key: Any, take: Callable[[Any], object]) -> None:
    """Take something out of one of the tables, and the table away with its last entry."""
    take(tables[key])
    if not tables[key]:
        del tables[key]

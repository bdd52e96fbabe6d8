"""About schemas and their registry. The codes are those of Confluent's registry, which its clients know."""

from __future__ import annotations

from typing import ClassVar

from postroad.errors.base import PostroadError


class SchemaError(PostroadError):
    """A request to the schema registry is refused. `error_code` begins with the HTTP status."""

    error_code: ClassVar[int] = 42201

    @property
    def status(self) -> int:
        return int(str(self.error_code)[:3])


class SubjectNotFound(SchemaError):
    error_code = 40401


class VersionNotFound(SchemaError):
    error_code = 40402


class SchemaNotFound(SchemaError):
    error_code = 40403


class SubjectSoftDeleted(SchemaError):
    error_code = 40404


class SubjectNotSoftDeleted(SchemaError):
    error_code = 40405


class VersionSoftDeleted(SchemaError):
    error_code = 40406


class VersionNotSoftDeleted(SchemaError):
    error_code = 40407


class SubjectConfigNotFound(SchemaError):
    error_code = 40408


class SubjectModeNotFound(SchemaError):
    error_code = 40409


class IncompatibleSchema(SchemaError):
    error_code = 409


class InvalidSchema(SchemaError):
    """The text is no schema of its type, or one that is not allowed; says where and why."""

    error_code = 42201


class InvalidVersion(SchemaError):
    error_code = 42202


class InvalidCompatibilityLevel(SchemaError):
    error_code = 42203


class InvalidMode(SchemaError):
    error_code = 42204


class OperationNotPermitted(SchemaError):
    error_code = 42205


class ReferenceExists(SchemaError):
    error_code = 42206

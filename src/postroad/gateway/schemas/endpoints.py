"""All endpoints of the registry; those with fixed words before those with names."""

from __future__ import annotations

from typing import Final

from postroad.gateway.rest.endpoint import Endpoint
from postroad.gateway.schemas import ids, settings, subjects

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    subjects.list_subjects,
    subjects.look_up,
    subjects.delete_subject,
    subjects.list_versions,
    subjects.register,
    subjects.get_version,
    subjects.delete_version,
    subjects.get_version_text,
    subjects.list_referencing,
    ids.list_types,
    ids.get_schema,
    ids.get_schema_text,
    ids.list_subjects_of_id,
    ids.list_versions_of_id,
    ids.list_contexts,
    subjects.compare,
    subjects.compare_with_version,
    settings.get_level,
    settings.set_level,
    settings.reset_level,
    settings.get_level_of,
    settings.set_level_of,
    settings.reset_level_of,
    settings.get_mode,
    settings.set_mode,
    settings.get_mode_of,
    settings.set_mode_of,
    settings.reset_mode_of,
)
ROOTS: Final = ("subjects", "schemas", "compatibility", "config", "mode", "contexts")

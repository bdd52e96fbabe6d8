"""What was registered is there after kill -9 of the node and of the gateway."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from postroad.testing import node


def fixed(size: int) -> Schema:
    return Schema(f'{{"type": "fixed", "name": "F", "size": {size}}}', "AVRO")


@pytest.mark.slow
def test_ids_versions_and_settings_outlive_kill_9(tmp_path: Path) -> None:
    with node({"http.enabled": True}, directory=tmp_path) as running:
        registry = SchemaRegistryClient({"url": running.http})
        registry.set_compatibility("gone", "NONE")
        registry.set_compatibility("kept", "NONE")
        ids = [registry.register_schema("kept", fixed(size)) for size in range(1, 6)]
        registry.delete_version("kept", 2)
        for size in (1, 9):
            registry.register_schema("gone", fixed(size))
        registry.delete_subject("gone")
        registry.delete_subject("gone", permanent=True)
        for size in range(6, 8):
            running.kill()
            running.start()
            registry = SchemaRegistryClient({"url": running.http})
            assert registry.get_subjects(deleted=True) == ["kept"]
            assert registry.get_versions("kept", deleted=True) == list(range(1, size))
            assert [
                registry.get_version("kept", number, deleted=True).schema_id for number in range(1, size)
            ] == ids
            assert 2 not in registry.get_versions("kept")
            assert registry.get_compatibility("kept") == "NONE"
            ids.append(registry.register_schema("kept", fixed(size)))
            assert len({*ids}) == len(ids)

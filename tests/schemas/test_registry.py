"""The registry's state: what was decided at any number of gateways adds up to the same everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroad.errors import (
    InvalidSchema,
    OperationNotPermitted,
    ReferenceExists,
    SchemaError,
    SchemaNotFound,
    SubjectNotFound,
    SubjectNotSoftDeleted,
    SubjectSoftDeleted,
    VersionNotFound,
    VersionNotSoftDeleted,
    VersionSoftDeleted,
)
from postroad.schemas import registry
from postroad.schemas.records import RegistryRecord
from postroad.schemas.registry import READONLY, Registry
from postroad.schemas.schema import AVRO, Reference


class Log:
    """A compacted topic."""

    def __init__(self) -> None:
        self.records: list[RegistryRecord] = []

    def compact(self) -> None:
        """Only the last record of a key is left, where it is; tombstones go too."""
        last = {record.key: number for number, record in enumerate(self.records)}
        self.records = [
            record for number, record in enumerate(self.records)
            if last[record.key] == number and record.value is not None
        ]  # fmt: skip

    def read(self) -> Registry:
        registry = Registry()
        for record in self.records:
            assert registry.apply(*record)
            registry.check()
        return registry


class Shop:
    """One gateway after the other decides and writes at once."""

    def __init__(self) -> None:
        self.log = Log()
        self.registry = Registry()
        self._made = 0

    def write(self, made: list[RegistryRecord]) -> None:
        for record in made:
            self.log.records.append(record)
            assert self.registry.apply(*record)
            self.registry.check()

    def nonce(self) -> str:
        self._made += 1
        return f"n{self._made}"

    def register(self, subject: str, text: str, *references: Reference) -> tuple[int, int]:
        nonce = self.nonce()
        self.write(self.registry.register(subject, AVRO, text, references, f"digest of {text}", nonce))
        held = self.registry.holds(nonce)
        assert held is not None
        return held.value.version, held.value.id

    def delete(self, subject: str, number: int, permanent: bool = False) -> None:
        self.write(self.registry.delete_version(subject, number, permanent, self.nonce()))

    def delete_subject(self, subject: str, permanent: bool = False) -> list[int]:
        versions, made = self.registry.delete_subject(subject, permanent, self.nonce())
        self.write(made)
        return versions


def seen(registry: Registry) -> dict[str, Any]:
    """What clients can find out."""
    return {
        subject: [
            (each.value.version, each.value.id, each.value.text, each.is_deleted)
            for each in registry.versions(subject, deleted=True)
        ]
        for subject in registry.subjects(deleted=True)
    } | {"levels": dict(registry.levels), "modes": dict(registry.modes)}


def test_a_subject_and_the_registry_have_a_bound_and_what_is_deleted_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "SUBJECT_VERSIONS_MAX", 3)
    monkeypatch.setattr(registry, "SUBJECT_BYTES_MAX", 50)
    monkeypatch.setattr(registry, "BYTES_MAX", 60)
    shop = Shop()
    for text in ("a" * 10, "b" * 10, "c" * 10):
        shop.register("orders-value", text)
    with pytest.raises(OperationNotPermitted, match="orders-value is full"):
        shop.register("orders-value", "d")
    shop.delete("orders-value", 1)
    with pytest.raises(OperationNotPermitted, match="permanent=true"):
        shop.register("orders-value", "d")
    shop.delete("orders-value", 1, permanent=True)
    with pytest.raises(OperationNotPermitted, match="orders-value is full"):
        shop.register("orders-value", "d" * 31)
    shop.register("orders-value", "d" * 30)
    shop.register("users-value", "e" * 10)
    with pytest.raises(OperationNotPermitted, match="registry is full"):
        shop.register("users-value", "f")


def test_versions_count_within_a_subject_and_ids_over_all() -> None:
    shop = Shop()
    assert shop.register("a", "one") == (1, 1)
    assert shop.register("a", "two") == (2, 2)
    assert shop.register("b", "two") == (1, 2)  # the same schema has one id
    assert shop.register("b", "three") == (2, 3)
    assert shop.registry.subjects() == ["a", "b"]
    assert [each.value.subject for each in shop.registry.by_id(2)] == ["a", "b"]
    assert shop.registry.version("a", None).value.version == 2


def test_what_is_deleted_is_still_there_by_its_id_until_it_is_deleted_for_good() -> None:
    shop = Shop()
    shop.register("a", "one")
    shop.register("a", "two")
    with pytest.raises(VersionNotSoftDeleted):
        shop.delete("a", 1, permanent=True)
    shop.delete("a", 1)
    with pytest.raises(VersionNotFound):
        shop.registry.version("a", 1)
    with pytest.raises(VersionSoftDeleted):
        shop.delete("a", 1)
    assert shop.registry.version("a", 1, deleted=True).value.id == 1
    assert shop.registry.by_id(1)
    shop.delete("a", 1, permanent=True)
    with pytest.raises(SchemaNotFound):
        shop.registry.by_id(1)
    assert shop.register("a", "one") == (3, 3)  # an id is never given out twice
    with pytest.raises(SubjectNotFound):
        shop.registry.versions("nothing")


def test_subjects_are_deleted_with_all_versions_and_settings() -> None:
    shop = Shop()
    shop.register("a", "one")
    shop.register("a", "two")
    shop.write(shop.registry.set_level("a", "full"))
    with pytest.raises(SubjectNotSoftDeleted):
        shop.delete_subject("a", permanent=True)
    assert shop.delete_subject("a") == [1, 2]
    assert shop.registry.levels == {}
    with pytest.raises(SubjectSoftDeleted):
        shop.delete_subject("a")
    assert shop.registry.subjects() == []
    assert shop.registry.subjects(deleted=True) == ["a"]
    assert shop.register("a", "one") == (3, 1)
    assert shop.delete_subject("a") == [3]
    assert shop.delete_subject("a", permanent=True) == [1, 2, 3]
    assert shop.register("a", "one") == (1, 3)


def test_what_others_refer_to_stays() -> None:
    shop = Shop()
    shop.register("colour", "colour")
    reference = Reference("Colour", "colour", 1)
    shop.register("wall", "wall", reference)
    assert shop.registry.referenced([reference]) == {"Colour": "colour"}
    assert [each.value.subject for each in shop.registry.referencing("colour", 1)] == ["wall"]
    for permanent in (False, True):
        with pytest.raises((ReferenceExists, VersionNotSoftDeleted)):
            shop.delete("colour", 1, permanent)
        with pytest.raises((ReferenceExists, SubjectNotSoftDeleted)):
            shop.delete_subject("colour", permanent)
    with pytest.raises(InvalidSchema, match="version 2"):
        shop.registry.referenced([Reference("Colour", "colour", 2)])
    shop.delete_subject("wall")
    shop.delete_subject("colour")
    with pytest.raises(ReferenceExists):
        shop.delete_subject("colour", permanent=True)
    shop.delete_subject("wall", permanent=True)
    shop.delete_subject("colour", permanent=True)
    assert shop.log.read().subjects(deleted=True) == []


def test_a_reference_that_leads_back_to_itself_is_refused() -> None:
    """No registry writes one; somebody with the right to write to the topic can."""
    registry = Registry()
    for name, other in (("a", "b"), ("b", "a")):
        value = {"subject": name, "version": 1, "id": 1, "kind": "AVRO", "text": "x", "digest": name}
        registry.apply(b'{"type":"schema","nonce":"%s"}' % name.encode(), json.dumps(value).encode())
        assert other
    registry._subjects["a"][1].value = registry._subjects["a"][1].value.__class__(
        "a", 1, 1, "AVRO", "x", "a", (Reference("a", "a", 1),)
    )
    with pytest.raises(InvalidSchema, match="back"):
        registry.referenced([Reference("a", "a", 1)])


def test_nothing_is_registered_where_it_is_forbidden() -> None:
    shop = Shop()
    shop.write(shop.registry.set_mode("", READONLY))
    with pytest.raises(OperationNotPermitted):
        shop.register("a", "one")
    shop.write(shop.registry.set_mode("a", "READWRITE"))
    shop.register("a", "one")
    shop.write(shop.registry.set_mode("a", None))
    with pytest.raises(OperationNotPermitted):
        shop.delete_subject("a")


def test_of_two_that_register_at_the_same_moment_the_first_in_the_log_holds() -> None:
    shop = Shop()
    shop.register("a", "one")
    ours = shop.registry.register("a", AVRO, "ours", (), "ours", "n-ours")
    theirs = shop.registry.register("a", AVRO, "theirs", (), "theirs", "n-theirs")
    elsewhere = shop.registry.register("b", AVRO, "other", (), "other", "n-other")
    shop.write(theirs + ours + elsewhere)
    assert shop.registry.holds("n-ours") is None  # version 2 of `a` is taken
    assert shop.registry.holds("n-other") is None  # and so is id 2
    assert shop.register("a", "ours") == (3, 3)  # with tombstones for what was lost
    assert shop.register("b", "other") == (1, 4)
    assert seen(shop.log.read()) == seen(shop.registry)
    shop.log.compact()
    assert seen(shop.log.read()) == seen(shop.registry)


@pytest.mark.parametrize(
    "key", [None, b"", b"{", b"\xff", b"7", b'{"type":"other"}', b'{"type":"schema"}', b"[" * 9999]
)
@pytest.mark.parametrize("value", [b"", b"{}", b"\xff", b'{"subject": 1}', b"[" * 9999])
def test_a_record_that_cannot_be_read_is_passed_over(key: bytes | None, value: bytes) -> None:
    registry = Registry()
    assert not registry.apply(key, value)
    assert seen(registry) == seen(Registry())


SUBJECTS, TEXTS = ("a", "b", "c"), ("one", "two", "three")
STEP = st.tuples(
    st.integers(0, 2),  # the gateway
    st.sampled_from(("register", "refer", "delete", "erase", "delete all", "erase all", "level", "compact")),
    st.sampled_from(SUBJECTS),
    st.sampled_from(TEXTS),
    st.booleans(),  # whether it has heard of all that was written before
)


@settings(max_examples=400, deadline=None)
@given(st.lists(STEP, max_size=40))
def test_gateways_that_hear_late_agree_and_so_does_one_that_comes_after_a_compaction(
    steps: list[Any],
) -> None:
    """Each acknowledged registration keeps its id for as long as it is not deleted for good."""
    log = Log()
    gateways, heard = [Registry() for _ in range(3)], [0] * 3
    written: list[RegistryRecord] = []

    def hear(number: int) -> None:
        for record in written[heard[number] :]:
            assert gateways[number].apply(*record)
            gateways[number].check()
        heard[number] = len(written)

    for count, (number, action, subject, text, is_current) in enumerate(steps):
        if is_current or action.startswith("erase"):  # what goes for good was deleted by an earlier request
            hear(number)
        if action == "compact":
            log.compact()
            continue
        made = _decided(gateways[number], action, subject, text, f"n{count}")
        written += made
        log.records += made
        hear(number)
    for number in range(3):
        hear(number)
    assert seen(gateways[0]) == seen(gateways[1]) == seen(gateways[2])
    whole = Log()
    whole.records = written
    assert seen(whole.read()) == seen(gateways[0])
    assert seen(log.read()) == seen(gateways[0])


def _decided(registry: Registry, action: str, subject: str, text: str, nonce: str) -> list[RegistryRecord]:
    references: tuple[Reference, ...] = ()
    if action == "refer":
        others = [each for each in SUBJECTS if each < subject and each in registry.subjects()]
        references = tuple(
            Reference(each, each, registry.version(each, None).value.version) for each in others
        )
    text += "".join(f" {each.subject}{each.version}" for each in references)
    decisions: dict[str, Callable[[], list[RegistryRecord]]] = {
        "register": lambda: registry.register(subject, AVRO, text, (), text, nonce),
        "refer": lambda: registry.register(subject, AVRO, text, references, text, nonce),
        "delete": lambda: registry.delete_version(subject, None, False, nonce),
        "erase": lambda: registry.delete_version(
            subject, registry.versions(subject, deleted=True)[0].value.version, True, nonce
        ),
        "delete all": lambda: registry.delete_subject(subject, False, nonce)[1],
        "erase all": lambda: registry.delete_subject(subject, True, nonce)[1],
        "level": lambda: registry.set_level(subject, "FULL" if text == "one" else None),
    }
    try:
        return decisions[action]()
    except SchemaError:
        return []

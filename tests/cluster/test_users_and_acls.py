"""Users, ACLs and quotas in the store: decided with compares, and followed by every image."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.cluster import acls as acl_decisions
from postroad.cluster import keys, quotas, users
from postroad.cluster.image import Image
from postroad.cluster.keys import AccessKeyValue, AclKey, AclValue, QuotaEntity, ScramValue
from postroad.cluster.store import ABSENT, Compare, Event, Put, Snapshot, StoreEntry
from postroad.errors import CoordinationError, InvalidRequest, PolicyViolation, ResourceNotFound
from tests.cluster.applied import commit

TOPIC, LITERAL, PREFIXED = 2, 3, 4
ABOUT = AclKey(TOPIC, LITERAL, "orders")
READ = AclValue("User:shop", "*", 3, 3)
WRITE = AclValue("User:shop", "*", 4, 3)
VERIFIER = ScramValue(b"salt", 8192, b"stored", b"server")
OTHER = ScramValue(b"pepper", 8192, b"stored", b"server")


def test_acls_are_added_once_and_removed_until_none_is_left() -> None:
    image = Image()
    changes = commit(image, acl_decisions.add_acls(image, ABOUT, [READ, WRITE, READ]))
    assert changes.security == ["acls/topic/literal/orders"]
    assert image.acls == {ABOUT: (READ, WRITE)}
    assert acl_decisions.add_acls(image, ABOUT, [READ]).operations == []
    commit(image, acl_decisions.remove_acls(image, ABOUT, [READ]))
    assert image.acls == {ABOUT: (WRITE,)}
    commit(image, acl_decisions.remove_acls(image, ABOUT, [WRITE]))
    assert image.acls == {}
    assert acl_decisions.remove_acls(image, ABOUT, [WRITE]).operations == []


def test_every_change_compares_what_it_was_decided_on() -> None:
    image = Image()
    key = keys.acl_key(ABOUT)
    assert acl_decisions.add_acls(image, ABOUT, [READ]).compares == [Compare(key, ABSENT)]
    commit(image, acl_decisions.add_acls(image, ABOUT, [READ]))
    assert acl_decisions.add_acls(image, ABOUT, [WRITE]).compares == [Compare(key, image.key_revision(key))]


def test_the_security_revision_rises_with_users_acls_and_quotas_and_nothing_else() -> None:
    image = Image()
    seen = [image.security_revision]
    commit(image, acl_decisions.add_acls(image, ABOUT, [READ]))
    seen.append(image.security_revision)
    commit(image, users.put_verifier(image, "shop", "SCRAM-SHA-256", VERIFIER))
    seen.append(image.security_revision)
    commit(image, quotas.alter_quota(image, QuotaEntity("shop", None), {quotas.PRODUCE_RATE: 100.0}))
    seen.append(image.security_revision)
    commit(image, acl_decisions.remove_acls(image, ABOUT, [READ]))
    seen.append(image.security_revision)
    assert sorted(set(seen)) == seen
    image.apply([Event("producer-ids", b'{"next":1000}', image.revision + 1)])
    assert image.security_revision == seen[-1]


def test_the_security_revision_rises_when_a_list_shows_that_a_rule_is_gone() -> None:
    image = Image()
    image.apply([Event(keys.acl_key(ABOUT), keys.encode(keys.AclsValue((READ,))), 5)])
    before = image.security_revision
    image.catch_up(Snapshot([], 5))
    assert image.acls == {}
    assert image.security_revision > before


def test_a_user_is_there_while_there_is_a_password() -> None:
    image = Image()
    commit(image, users.change_user(image, "shop", {"A": VERIFIER, "B": VERIFIER}, []))
    commit(image, users.change_user(image, "shop", {"B": OTHER}, ["A"]))
    assert image.users["shop"].scram == {"B": OTHER}
    commit(image, users.delete_verifier(image, "shop", "B"))
    assert image.users == {}
    with pytest.raises(ResourceNotFound):
        users.delete_verifier(image, "shop", "B")


def test_quotas_are_merged_and_taken_back() -> None:
    image = Image()
    entity = QuotaEntity("shop", None)
    commit(image, quotas.alter_quota(image, entity, {quotas.PRODUCE_RATE: 100.0, quotas.FETCH_RATE: 5.0}))
    commit(image, quotas.alter_quota(image, entity, {quotas.FETCH_RATE: None}))
    assert image.quotas == {entity: {quotas.PRODUCE_RATE: 100.0}}
    commit(image, quotas.alter_quota(image, entity, {quotas.PRODUCE_RATE: None}))
    assert image.quotas == {}


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_quota_that_is_none_is_refused(value: float) -> None:
    with pytest.raises(InvalidRequest):
        quotas.alter_quota(Image(), QuotaEntity("shop", None), {quotas.FETCH_RATE: value})


def test_unknown_quotas_and_nobodys_quotas_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="no quota"):
        quotas.alter_quota(Image(), QuotaEntity("shop", None), {"luck": 1.0})
    with pytest.raises(InvalidRequest, match=r"user's, a client's"):
        quotas.alter_quota(Image(), QuotaEntity(None, None), {quotas.FETCH_RATE: 1.0})


def test_one_resource_has_so_many_acls_and_no_more() -> None:
    image = Image()
    many = [AclValue(f"User:{number}", "*", 3, 3) for number in range(acl_decisions.ACLS_OF_RESOURCE_MAX)]
    commit(image, acl_decisions.add_acls(image, ABOUT, many))
    with pytest.raises(PolicyViolation):
        acl_decisions.add_acls(image, ABOUT, [READ])


def test_acls_of_a_kind_that_is_not_known_stop_the_node() -> None:
    for key in ("acls/realm/literal/x", "acls/topic/regex/x"):
        with pytest.raises(CoordinationError, match=key):
            Image().apply([Event(key, b'{"acls":[]}', 1)])


names = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1, max_size=9)


@given(st.builds(AclKey, st.sampled_from([2, 3, 4, 5]), st.sampled_from([3, 4]), names))
def test_keys_of_acls_can_be_read_back(about: AclKey) -> None:
    assert keys.read_acl_key(keys.acl_key(about).removeprefix(keys.ACLS)) == about


@given(st.builds(QuotaEntity, st.none() | names | st.just(""), st.none() | names | st.just("")))
def test_keys_of_quotas_can_be_read_back(entity: QuotaEntity) -> None:
    assert keys.read_quota_key(keys.quota_key(entity).removeprefix(keys.QUOTAS)) == entity


def test_a_node_that_starts_sees_what_a_node_that_followed_sees() -> None:
    image = Image()
    entries: list[StoreEntry] = []
    for make in (
        lambda image: users.put_verifier(image, "shop", "SCRAM-SHA-256", VERIFIER),
        lambda image: users.create_key(image, "shop", "ID", AccessKeyValue(1, 5)),
        lambda image: acl_decisions.add_acls(image, AclKey(TOPIC, PREFIXED, "a/b"), [READ]),
        lambda image: quotas.alter_quota(image, QuotaEntity(None, ""), {quotas.REQUEST_PERCENTAGE: 50.0}),
    ):
        decision = make(image)
        commit(image, decision)
        puts = [operation for operation in decision.operations if isinstance(operation, Put)]
        entries += [StoreEntry(put.key, put.value, image.revision) for put in puts]
    other = Image()
    entries = list({entry.key: entry for entry in entries}.values())
    other.catch_up(Snapshot(sorted(entries), image.revision))
    assert (other.users, other.acls, other.quotas) == (image.users, image.acls, image.quotas)
    assert other.access_keys == image.access_keys == {"ID": "shop"}
    other.check()


def test_access_keys_belong_to_a_user_and_go_with_it() -> None:
    image = Image()
    with pytest.raises(ResourceNotFound):
        users.create_key(image, "shop", "ID", AccessKeyValue(1))
    commit(image, users.put_verifier(image, "shop", "A", VERIFIER))
    commit(image, users.create_key(image, "shop", "ID", AccessKeyValue(1, 7)))
    assert users.create_key(image, "shop", "ID", AccessKeyValue(1, 9)).operations == []
    commit(image, users.put_verifier(image, "shop", "A", OTHER))  # another password: the key stays
    assert image.users["shop"].keys == {"ID": AccessKeyValue(1, 7)}
    assert image.access_keys == {"ID": "shop"}
    commit(image, users.delete_verifier(image, "shop", "A"))
    assert image.access_keys == {}
    commit(image, users.put_verifier(image, "shop", "A", VERIFIER))  # another one of the same name
    assert image.users["shop"].keys == {}
    image.check()


def test_access_keys_are_disabled_enabled_and_deleted() -> None:
    image = Image()
    commit(image, users.put_verifier(image, "shop", "A", VERIFIER))
    for key_id in ("ONE", "TWO"):
        commit(image, users.create_key(image, "shop", key_id, AccessKeyValue(1)))
    commit(image, users.enable_key(image, "ONE", enabled=False))
    assert not image.users["shop"].keys["ONE"].enabled
    assert image.users["shop"].keys["TWO"].enabled
    assert users.enable_key(image, "ONE", enabled=False).operations == []
    commit(image, users.enable_key(image, "ONE", enabled=True))
    commit(image, users.delete_key(image, "ONE"))
    assert image.access_keys == {"TWO": "shop"}
    for decide in (
        lambda: users.delete_key(image, "ONE"),
        lambda: users.enable_key(image, "X", enabled=True),
    ):
        with pytest.raises(ResourceNotFound):
            decide()
    image.check()


def test_a_user_has_a_bounded_number_of_access_keys() -> None:
    image = Image()
    commit(image, users.put_verifier(image, "shop", "A", VERIFIER))
    for number in range(users.KEYS_MAX):
        commit(image, users.create_key(image, "shop", str(number), AccessKeyValue(1)))
    with pytest.raises(PolicyViolation):
        users.create_key(image, "shop", "more", AccessKeyValue(1))


def test_the_most_exact_quota_counts_in_kafkas_order() -> None:
    """With each entity gone that came before, the next one counts; users and ids share what it names."""
    both, user, client = ("ann", "etl"), ("ann", None), (None, "etl")
    order = [
        (("ann", "etl"), both),
        (("ann", ""), both),
        (("ann", None), user),
        (("", "etl"), both),
        (("", ""), both),
        (("", None), user),
        ((None, "etl"), client),
        ((None, ""), client),
    ]
    known = {QuotaEntity(*entity): {quotas.FETCH_RATE: float(n)} for n, (entity, _) in enumerate(order)}
    for number, (entity, shared_by) in enumerate(order):
        found = quotas.limit_of(known, quotas.FETCH_RATE, "ann", "etl")
        assert found == quotas.Limit(float(number), shared_by)
        known[QuotaEntity(*entity)] = {quotas.PRODUCE_RATE: 1.0}  # which is of another kind
    assert quotas.limit_of(known, quotas.FETCH_RATE, "ann", "etl") is None

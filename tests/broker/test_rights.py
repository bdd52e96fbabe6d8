"""Every API, asked by nobody, by a user without rights, by one with the rights of the table, by a super user.

The rights here are written down anew, from docs/security.md: they are not read from the handlers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from postroad.broker import api as handlers
from postroad.broker.access import Rights
from postroad.security.resources import Operation as Op
from postroad.security.resources import PatternType, Permission
from postroad.security.resources import ResourceType as Type
from postroad.wire import (
    access_keys,
    backup,
    callers,
    copy_letters,
    node_metrics,
    nodes,
    peek,
    peer,
    receipt_key,
    shared_transactions,
)
from postroad.wire.messages import fetch
from postroad.wire.share_requests import InTransaction
from tests.broker.rights_table import (
    CLOSED,
    CLUSTER_DENIED,
    DENIALS,
    GROUP,
    GROUP_DENIED,
    HIDDEN,
    NAME,
    OF_KAFKA,
    ON_CLUSTER,
    ON_GROUP,
    ON_TID,
    ON_TOPIC,
    OPEN,
    TID,
    TID_DENIED,
    TOPIC_DENIED,
    Case,
    D,
    R,
    W,
    module,
)
from tests.broker.secured import Secured, secured_node
from tests.broker.test_queues import Owned
from tests.clients.wait import until
from tests.faults.raw import Closed, RawConnection, batch_of

OURS: Final = [
    Case(
        peek,
        0,
        lambda topic_id: peek.PeekRequest(GROUP, topic_id, 0, 0, 1),
        GROUP_DENIED,
        (ON_GROUP[D], ON_TOPIC[D]),
    ),
    Case(peer, 0, lambda _: peer.FindGroups(), CLUSTER_DENIED, (ON_CLUSTER[Op.CLUSTER_ACTION],)),
    Case(
        copy_letters,
        0,
        lambda topic_id: copy_letters.CopyLettersRequest(topic_id, 0, batch_of(b"x")),
        CLUSTER_DENIED,
        (ON_CLUSTER[Op.CLUSTER_ACTION],),
    ),
    Case(node_metrics, 0, lambda _: node_metrics.NodeMetricsRequest(), CLOSED, (ON_CLUSTER[D],)),
    Case(
        receipt_key,
        0,
        lambda _: receipt_key.ReceiptKeyRequest(),
        CLUSTER_DENIED,
        (ON_CLUSTER[Op.CLUSTER_ACTION],),
    ),
    Case(
        callers,
        0,
        lambda _: callers.FollowRules(),
        CLUSTER_DENIED,
        (ON_CLUSTER[Op.CLUSTER_ACTION],),
    ),
    Case(
        callers,
        0,
        lambda _: callers.FindSigningKey("id", "20260301", "us-east-1", "sqs"),
        CLUSTER_DENIED,
        (ON_CLUSTER[Op.CLUSTER_ACTION],),
        "key",
    ),
    Case(
        shared_transactions,
        0,
        lambda _: shared_transactions.Enter(TID, "run", 0, 1000),
        TID_DENIED,
        (ON_TID[Op.WRITE],),
    ),
    Case(
        shared_transactions,
        0,
        lambda _: shared_transactions.Finish(TID, "run", 0),
        TID_DENIED,
        (ON_TID[Op.WRITE],),
        "end",
    ),
    Case(backup, 0, lambda _: backup.ReadStore(), CLUSTER_DENIED, (ON_CLUSTER[Op.CLUSTER_ACTION],)),
    Case(
        backup,
        0,
        lambda topic_id: backup.ReadLog(topic_id, 0, 0, 1),
        CLUSTER_DENIED,
        (ON_CLUSTER[Op.CLUSTER_ACTION],),
        "log",
    ),
    Case(nodes, 0, lambda _: nodes.DescribeNodes(), CLUSTER_DENIED, (ON_CLUSTER[D],)),
    Case(nodes, 0, lambda _: nodes.CancelDrain(9), CLUSTER_DENIED, (ON_CLUSTER[Op.ALTER],), "order"),
    Case(access_keys, 0, lambda _: access_keys.ListKeys(), CLUSTER_DENIED, (ON_CLUSTER[D],)),
    Case(
        access_keys,
        0,
        lambda _: access_keys.DeleteKey("none"),
        CLUSTER_DENIED,
        (ON_CLUSTER[Op.ALTER],),
        "order",
    ),
]
CASES: Final = [*OF_KAFKA, *OURS]
ERROR_FIELDS: Final = {"error_code", "partition_error_code", "acknowledge_error_code"}
BEFORE_LOGIN: Final = {17, 18, 36}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_node(tmp_path_factory.mktemp("rights")) as running:
        running.create(NAME)
        yield running


def codes(answer: Any) -> Iterator[int]:
    """All error codes in an answer, however deep."""
    if isinstance(answer, list | tuple):
        for each in answer:
            yield from codes(each)
        return
    for name in getattr(answer, "__slots__", ()) or getattr(answer, "__struct_fields__", ()):
        value = getattr(answer, name)
        if isinstance(value, int) and name in ERROR_FIELDS:
            yield value
        elif not isinstance(value, int | str | bytes | None):
            yield from codes(value)


def test_every_api_declares_what_it_asks_for_and_is_asked_here() -> None:
    assert all(isinstance(api.RIGHTS, Rights) for api in handlers.ALL)
    assert {api.KEY for api in handlers.ALL} - {36} == {case.api.KEY for case in CASES}


def test_only_logins_and_versions_come_before_the_login() -> None:
    assert {api.KEY for api in handlers.ALL if api.RIGHTS.before_login} == BEFORE_LOGIN


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nobody_is_answered_nothing(node: Secured, case: Case) -> None:
    topic_id = node.node.image.topics[NAME].id
    with node.connect() as client:
        if case.api.KEY in BEFORE_LOGIN:
            assert client.call(case.api, case.version, case.make(topic_id)).error_code == 0
        else:
            with pytest.raises(Closed):
                client.call(case.api, case.version, case.make(topic_id))


def ask(client: RawConnection, case: Case, topic_id: bytes) -> Any:
    return client.call(case.api, case.version, case.make(topic_id))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_user_without_rights_is_refused(node: Secured, case: Case) -> None:
    topic_id = node.node.image.topics[NAME].id
    with node.connect_as("stranger") as client:
        if case.api.KEY in BEFORE_LOGIN:
            return
        if case.denial == CLOSED:
            with pytest.raises(Closed):
                ask(client, case, topic_id)
            return
        if case.way == "topic" and case.denial == TOPIC_DENIED:  # the group's right is not enough
            node.allow("halfway", *ON_GROUP[R])
            with node.connect_as("halfway") as halfway:
                assert TOPIC_DENIED in set(codes(ask(halfway, case, topic_id)))
            return
        answer = ask(client, case, topic_id)
        if case.denial == HIDDEN:
            assert answer.topics == []
        elif case.denial == OPEN:
            assert not DENIALS & set(codes(answer))
        else:
            assert DENIALS & set(codes(answer)) == {case.denial}
            assert 0 not in set(_below(answer, case))


def _below(answer: Any, case: Case) -> Iterator[int]:
    """Codes of the things that were asked for; a whole answer may have a code of its own that is 0."""
    own = [getattr(answer, name) for name in ("error_code",) if hasattr(answer, name)]
    found = list(codes(answer))
    for code in own:
        found.remove(code)
    yield from found if found else own


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_user_with_the_rights_is_let_in_and_with_one_less_is_not(node: Secured, case: Case) -> None:
    name = f"user-{case}".replace("*", "-")
    for right in case.rights:
        node.allow(name, *right)
    if case.denial not in (OPEN,) and case.api.KEY not in (20,):  # the topic is needed by others
        topic_id = node.node.image.topics[NAME].id
        with node.connect_as(name) as client:
            assert not DENIALS & set(codes(ask(client, case, topic_id)))
    if len(case.rights) == 1 or case.way == "replica" or not case.rights:
        return
    for right in case.rights:
        node.disallow(name, *right)
        topic_id = node.node.image.topics[NAME].id
        with node.connect_as(name) as client:
            refused = DENIALS & set(codes(ask(client, case, topic_id)))
        needs_partitions = {79, 90, 91, 92}  # asked without topics
        assert refused or (right[1] == Type.TOPIC and case.api.KEY in needs_partitions | {28, 68, 69, 76, 78})
        node.allow(name, *right)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_super_user_is_let_in_though_a_rule_denies(node: Secured, case: Case) -> None:
    if case.api.KEY == 20:
        return
    for _, type_, name in case.rights:
        node.allow("admin", Op.ALL, type_, name, permission=Permission.DENY)
    topic_id = node.node.image.topics[NAME].id
    with node.connect_as("admin") as client:
        assert not DENIALS & set(codes(ask(client, case, topic_id)))


def test_a_topic_is_deleted_by_who_may(node: Secured) -> None:
    delete = module("delete_topics")
    for way in ("name", "id"):
        topic_id = node.create(f"gone-by-{way}")
        state = (
            delete.DeleteTopicState(f"gone-by-{way}")
            if way == "name"
            else delete.DeleteTopicState(None, topic_id)
        )
        request = delete.DeleteTopicsRequest(topics=[state], timeout_ms=5000)
        node.allow("seer", D, Type.TOPIC, f"gone-by-{way}")
        with node.connect_as("seer") as client:
            assert client.call(delete, 6, request).responses[0].error_code == TOPIC_DENIED
        node.allow("cleaner", Op.DELETE, Type.TOPIC, "gone-", pattern=PatternType.PREFIXED)
        with node.connect_as("cleaner") as client:
            assert client.call(delete, 6, request).responses[0].error_code == 0


def test_an_unknown_topic_and_a_forbidden_one_are_told_apart_by_nobody(node: Secured) -> None:
    metadata = module("metadata")
    asked = [metadata.MetadataRequestTopic(name=each) for each in (NAME, "nothing")]
    with node.connect_as("stranger") as client:
        answer = client.call(metadata, 12, metadata.MetadataRequest(topics=asked))
    assert [topic.error_code for topic in answer.topics] == [TOPIC_DENIED, TOPIC_DENIED]
    assert [topic.topic_id for topic in answer.topics] == [bytes(16), bytes(16)]


def publish(client: RawConnection, topic: str) -> None:
    produce = module("produce")
    data = [produce.PartitionProduceData(0, batch_of(b"x"))]
    topics = [produce.TopicProduceData(topic, partition_data=data)]
    request = produce.ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
    assert set(codes(client.call(produce, 9, request))) == {0}


@pytest.mark.parametrize("sessions", [False, True])
def test_a_fetch_that_waits_is_refused_when_the_right_is_gone(node: Secured, sessions: bool) -> None:
    """By the short way (a fetch like the one before, at the end) and by the long one."""
    name = f"waited-{sessions}"
    node.create(name)
    wanted = fetch.FetchPartition(0, partition_max_bytes=1000)
    topics = [fetch.FetchTopic(name, partitions=[wanted])]
    epoch = 0 if sessions else -1
    request = fetch.FetchRequest(
        max_wait_ms=20_000, min_bytes=1, max_bytes=1000, topics=topics, session_epoch=epoch
    )
    node.allow("waiter", R, Type.TOPIC, name)
    with node.connect_as("waiter") as client, node.connect_as("admin") as admin:
        publish(admin, name)
        assert set(codes(client.call(fetch, 12, request))) == {0}
        wanted.fetch_offset = 1
        answered = client.begin(fetch, 12, request)
        inside = node.inside(client)
        until(lambda: not inside.answered_all, "the fetch waits")
        node.disallow("waiter", R, Type.TOPIC, name)
        publish(admin, name)
        answer = answered()
        assert TOPIC_DENIED in set(codes(answer))
        assert not answer.responses[0].partitions[0].records


@pytest.mark.parametrize(
    ("name", "value", "right", "denial"),
    [
        ("postroad.topics", f"mine, {NAME}", ON_TOPIC[R], TOPIC_DENIED),
        ("errors.deadletterqueue.topic.name", NAME, ON_TOPIC[W], TOPIC_DENIED),
        ("postroad.webhook", "{}", ON_CLUSTER[Op.CLUSTER_ACTION], CLUSTER_DENIED),
    ],
)
@pytest.mark.parametrize("api", ["alter_configs", "incremental_alter_configs"])
def test_a_groups_configs_get_nobody_what_he_may_not_have(
    node: Secured, api: str, name: str, value: str, right: tuple[Op, Type, str], denial: int
) -> None:
    """Nodes copy dead letters, also of messages that nobody received; gateways deliver to web hooks."""
    codec = module(api)
    config = (
        (codec.AlterableConfig(name, 0, value),) if api[0] == "i" else (codec.AlterableConfig(name, value),)
    )
    resource = codec.AlterConfigsResource(32, GROUP, list(config))
    request_of = codec.IncrementalAlterConfigsRequest if api[0] == "i" else codec.AlterConfigsRequest
    request = request_of([resource], True)
    who = f"owner-{api}-{name}"
    node.allow(who, *ON_GROUP[Op.ALTER_CONFIGS])
    node.allow(who, R, Type.TOPIC, "mine")
    with node.connect_as(who) as client:
        assert set(codes(client.call(codec, 1, request))) == {denial}
        node.allow(who, *right)
        assert denial not in set(codes(client.call(codec, 1, request)))


@pytest.mark.parametrize("name", ["share_acknowledge", "share_fetch"])
def test_an_owner_may_be_named_by_gateways_only(node: Secured, name: str) -> None:
    """Else a member could settle what another one holds."""
    codec, topic_id = module(name), node.node.image.topics[NAME].id
    if name == "share_fetch":
        topics = [codec.FetchTopic(topic_id, [codec.FetchPartition(0, [])])]
        request = codec.ShareFetchRequest(GROUP, "m", 0, 0, 1, 1000, 9, 9, topics=topics)
    else:
        request = codec.ShareAcknowledgeRequest(GROUP, "m", 7, topics=[])
    owned: Any = Owned(codec, "somebody")
    for right in (ON_GROUP[R], ON_TOPIC[R]):
        node.allow("receiver", *right)
        node.allow("gateway", *right)
    node.allow("gateway", *ON_CLUSTER[Op.CLUSTER_ACTION])
    with node.connect_as("receiver") as client:
        assert client.call(owned, 1, request).error_code == CLUSTER_DENIED
    with node.connect_as("gateway") as client:
        assert client.call(owned, 1, request).error_code not in DENIALS


def test_accepting_in_a_transaction_asks_for_the_transactional_id_too(node: Secured) -> None:
    codec, topic_id = module("share_acknowledge"), node.node.image.topics[NAME].id
    part = codec.AcknowledgePartition(0, [codec.AcknowledgementBatch(0, 0, [1])])
    topics = [codec.AcknowledgeTopic(topic_id, [part])]
    request = codec.ShareAcknowledgeRequest(GROUP, "m", 7, topics=topics)
    mine: Any = Owned(codec, "", transaction=InTransaction(1, 0, TID))
    node.allow("taker", *ON_GROUP[R])
    node.allow("taker", *ON_TOPIC[R])
    with node.connect_as("taker") as client:
        assert client.call(mine, 1, request).error_code == TID_DENIED
        node.allow("taker", *ON_TID[W])
        assert client.call(mine, 1, request).error_code not in DENIALS

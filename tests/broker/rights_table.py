"""The rights that each API asks for, written down anew from docs/security.md, with a request for each."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple

from postroad.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    UnknownTopicId,
)
from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from postroad.wire.messages import fetch
from tests.faults.raw import batch_of

NAME, GROUP, TID = "orders", "billing", "till"
TOPIC_DENIED, GROUP_DENIED = TopicAuthorizationFailed.code, GroupAuthorizationFailed.code
CLUSTER_DENIED, TID_DENIED = ClusterAuthorizationFailed.code, TransactionalIdAuthorizationFailed.code
DENIALS = {TOPIC_DENIED, GROUP_DENIED, CLUSTER_DENIED, TID_DENIED, UnknownTopicId.code}
HIDDEN: Final = "hidden"  # the answer leaves out what may not be seen
CLOSED: Final = "closed"  # there is no place for an error: the connection ends
OPEN: Final = "open"  # everybody who has logged in may

ON_TOPIC = {op: (op, Type.TOPIC, NAME) for op in Op}
ON_GROUP = {op: (op, Type.GROUP, GROUP) for op in Op}
ON_TID = {op: (op, Type.TRANSACTIONAL_ID, TID) for op in Op}
ON_CLUSTER = {op: (op, Type.CLUSTER, "kafka-cluster") for op in Op}


class Case(NamedTuple):
    """One API, asked in one way."""

    api: Any  # its codec
    version: int
    make: Callable[[bytes], Any]  # the request, of the topic's id
    denial: int | str  # what a user without rights is told
    rights: tuple[tuple[Op, Type, str], ...] = ()
    way: str = "name"

    def __str__(self) -> str:
        return f"{self.api.__name__.rpartition('.')[2]}-by-{self.way}"


def module(name: str) -> Any:
    return import_module(f"postroad.wire.messages.{name}")


def case(
    name: str,
    version: int,
    denial: int | str,
    *rights: tuple[Op, Type, str],
    way: str = "name",
    **fields: Any,
) -> Case:
    """The request is the fields; those that are functions are given the codec and the topic's id."""
    codec = module(name)
    request = next(
        getattr(codec, each) for each in vars(codec) if each.lower() == name.replace("_", "") + "request"
    )

    def make(topic_id: bytes) -> Any:
        return request(
            **{key: value(codec, topic_id) if callable(value) else value for key, value in fields.items()}
        )

    return Case(codec, version, make, denial, rights, way)


def produced(way: str) -> Any:
    def make(codec: Any, topic_id: bytes) -> Any:
        data = codec.PartitionProduceData(0, batch_of(b"one"))
        named = {"topic_id": topic_id} if way == "id" else {"name": NAME}
        return [codec.TopicProduceData(partition_data=[data], **named)]

    return make


def fetched(way: str) -> Any:
    def make(codec: Any, topic_id: bytes) -> Any:
        wanted = codec.FetchPartition(partition=0, partition_max_bytes=1000)
        named = {"topic_id": topic_id} if way == "id" else {"topic": NAME}
        return [codec.FetchTopic(partitions=[wanted], **named)]

    return make


W, R, D = Op.WRITE, Op.READ, Op.DESCRIBE
OFFSET = {"committed_offset": 0, "committed_leader_epoch": -1}
OF_KAFKA: Final = [
    case("produce", 9, TOPIC_DENIED, ON_TOPIC[W], acks=-1, timeout_ms=1000, topic_data=produced("name")),
    case(
        "produce",
        13,
        UnknownTopicId.code,
        ON_TOPIC[W],
        way="id",
        acks=-1,
        timeout_ms=1000,
        topic_data=produced("id"),
    ),
    case("fetch", 12, TOPIC_DENIED, ON_TOPIC[R], max_bytes=1000, topics=fetched("name")),
    case("fetch", 16, UnknownTopicId.code, ON_TOPIC[R], way="id", max_bytes=1000, topics=fetched("id")),
    Case(
        fetch,
        12,
        lambda _: fetch.FetchRequest(replica_id=2, max_bytes=1000, topics=fetched("name")(fetch, b"")),
        CLUSTER_DENIED,
        (ON_CLUSTER[Op.CLUSTER_ACTION], ON_TOPIC[R]),
        "replica",
    ),
    case(
        "list_offsets",
        7,
        TOPIC_DENIED,
        ON_TOPIC[D],
        topics=lambda m, _: [m.ListOffsetsTopic(NAME, [m.ListOffsetsPartition(0, -1, -1)])],
    ),
    case("metadata", 12, TOPIC_DENIED, ON_TOPIC[D], topics=lambda m, _: [m.MetadataRequestTopic(name=NAME)]),
    case(
        "metadata",
        12,
        UnknownTopicId.code,
        ON_TOPIC[D],
        way="id",
        topics=lambda m, topic_id: [m.MetadataRequestTopic(topic_id=topic_id, name=None)],
    ),
    case("metadata", 12, HIDDEN, ON_TOPIC[D], way="all", topics=None),
    case(
        "offset_commit",
        9,
        GROUP_DENIED,
        ON_GROUP[R],
        ON_TOPIC[R],
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        topics=lambda m, _: [
            m.OffsetCommitRequestTopic(NAME, bytes(16), [m.OffsetCommitRequestPartition(0, **OFFSET)])
        ],
    ),
    case(
        "offset_commit",
        10,
        GROUP_DENIED,
        ON_GROUP[R],
        ON_TOPIC[R],
        way="id",
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        topics=lambda m, topic_id: [
            m.OffsetCommitRequestTopic("", topic_id, [m.OffsetCommitRequestPartition(0, **OFFSET)])
        ],
    ),
    case(
        "offset_fetch",
        9,
        GROUP_DENIED,
        ON_GROUP[D],
        ON_TOPIC[D],
        groups=lambda m, _: [
            m.OffsetFetchRequestGroup(GROUP, topics=[m.OffsetFetchRequestTopics(NAME, bytes(16), [0])])
        ],
    ),
    case("find_coordinator", 4, GROUP_DENIED, ON_GROUP[D], key_type=0, coordinator_keys=[GROUP]),
    case("find_coordinator", 4, TID_DENIED, ON_TID[D], way="transaction", key_type=1, coordinator_keys=[TID]),
    case(
        "join_group",
        5,
        GROUP_DENIED,
        ON_GROUP[R],
        group_id=GROUP,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=lambda m, _: [m.JoinGroupRequestProtocol("range", b"")],
    ),
    case("heartbeat", 3, GROUP_DENIED, ON_GROUP[R], group_id=GROUP, generation_id=1, member_id="m"),
    case(
        "leave_group",
        3,
        GROUP_DENIED,
        ON_GROUP[R],
        group_id=GROUP,
        members=lambda m, _: [m.MemberIdentity("m")],
    ),
    case("sync_group", 3, GROUP_DENIED, ON_GROUP[R], group_id=GROUP, generation_id=1, member_id="m"),
    case("describe_groups", 5, GROUP_DENIED, ON_GROUP[D], groups=[GROUP]),
    case("list_groups", 4, OPEN),
    case("sasl_handshake", 1, OPEN, mechanism="SCRAM-SHA-256"),
    case("api_versions", 3, OPEN, client_software_name="a", client_software_version="1"),
    case(
        "create_topics",
        7,
        TOPIC_DENIED,
        (Op.CREATE, Type.TOPIC, "new"),
        validate_only=True,
        topics=lambda m, _: [m.CreatableTopic("new", 1, 1)],
    ),
    case(
        "create_topics",
        7,
        TOPIC_DENIED,
        ON_CLUSTER[Op.CREATE],
        way="cluster",
        validate_only=True,
        topics=lambda m, _: [m.CreatableTopic("new", 1, 1)],
    ),
    case(
        "delete_topics",
        6,
        TOPIC_DENIED,
        ON_TOPIC[Op.DELETE],
        topics=lambda m, _: [m.DeleteTopicState(name=NAME)],
    ),
    case(
        "delete_topics",
        6,
        UnknownTopicId.code,
        ON_TOPIC[Op.DELETE],
        way="id",
        topics=lambda m, topic_id: [m.DeleteTopicState(None, topic_id)],
    ),
    case(
        "delete_records",
        2,
        TOPIC_DENIED,
        ON_TOPIC[Op.DELETE],
        topics=lambda m, _: [m.DeleteRecordsTopic(NAME, [m.DeleteRecordsPartition(0, 0)])],
    ),
    case("init_producer_id", 4, CLUSTER_DENIED, ON_CLUSTER[Op.IDEMPOTENT_WRITE], transactional_id=None),
    case("init_producer_id", 4, CLUSTER_DENIED, ON_TOPIC[W], way="topic", transactional_id=None),
    case(
        "init_producer_id",
        4,
        TID_DENIED,
        ON_TID[W],
        way="transaction",
        transactional_id=TID,
        transaction_timeout_ms=1000,
    ),
    case(
        "offset_for_leader_epoch",
        3,
        TOPIC_DENIED,
        ON_TOPIC[D],
        topics=lambda m, _: [m.OffsetForLeaderTopic(NAME, [m.OffsetForLeaderPartition(0, -1, 0)])],
    ),
    case(
        "add_partitions_to_txn",
        3,
        TOPIC_DENIED,
        ON_TOPIC[W],
        ON_TID[W],
        v3_and_below_transactional_id=TID,
        v3_and_below_topics=lambda m, _: [m.AddPartitionsToTxnTopic(NAME, [0])],
    ),
    case("add_offsets_to_txn", 3, GROUP_DENIED, ON_GROUP[R], ON_TID[W], transactional_id=TID, group_id=GROUP),
    case("end_txn", 3, TID_DENIED, ON_TID[W], transactional_id=TID),
    case("end_txn", 5, TID_DENIED, ON_TID[W], way="own epochs", transactional_id=TID),
    case(
        "write_txn_markers",
        1,
        CLUSTER_DENIED,
        ON_CLUSTER[Op.CLUSTER_ACTION],
        markers=lambda m, _: [m.WritableTxnMarker(1, 0, False, [m.WritableTxnMarkerTopic(NAME, [0])], 0)],
    ),
    case(
        "write_txn_markers",
        1,
        CLUSTER_DENIED,
        ON_CLUSTER[Op.ALTER],
        way="operator",
        markers=lambda m, _: [m.WritableTxnMarker(1, 0, False, [m.WritableTxnMarkerTopic(NAME, [0])], 0)],
    ),
    case(
        "txn_offset_commit",
        3,
        TID_DENIED,
        ON_GROUP[R],
        ON_TOPIC[R],
        ON_TID[W],
        transactional_id=TID,
        group_id=GROUP,
        topics=lambda m, _: [
            m.TxnOffsetCommitRequestTopic(NAME, [m.TxnOffsetCommitRequestPartition(0, **OFFSET)])
        ],
    ),
    case(
        "describe_acls",
        2,
        CLUSTER_DENIED,
        ON_CLUSTER[D],
        resource_type_filter=1,
        pattern_type_filter=1,
        operation=1,
        permission_type=1,
    ),
    case(
        "create_acls",
        2,
        CLUSTER_DENIED,
        ON_CLUSTER[Op.ALTER],
        creations=lambda m, _: [m.AclCreation(2, "other", 3, "User:x", "*", 3, 3)],
    ),
    case(
        "delete_acls",
        2,
        CLUSTER_DENIED,
        ON_CLUSTER[Op.ALTER],
        filters=lambda m, _: [m.DeleteAclsFilter(2, "other", 3, "User:x", None, 1, 1)],
    ),
    case(
        "describe_configs",
        4,
        TOPIC_DENIED,
        ON_TOPIC[Op.DESCRIBE_CONFIGS],
        resources=lambda m, _: [m.DescribeConfigsResource(2, NAME)],
    ),
    case(
        "describe_configs",
        4,
        GROUP_DENIED,
        ON_GROUP[Op.DESCRIBE_CONFIGS],
        way="group",
        resources=lambda m, _: [m.DescribeConfigsResource(32, GROUP)],
    ),
    case(
        "describe_configs",
        4,
        CLUSTER_DENIED,
        ON_CLUSTER[Op.DESCRIBE_CONFIGS],
        way="node",
        resources=lambda m, _: [m.DescribeConfigsResource(4, "")],
    ),
    case(
        "alter_configs",
        2,
        TOPIC_DENIED,
        ON_TOPIC[Op.ALTER_CONFIGS],
        validate_only=True,
        resources=lambda m, _: [m.AlterConfigsResource(2, NAME)],
    ),
    case(
        "alter_configs",
        2,
        GROUP_DENIED,
        ON_GROUP[Op.ALTER_CONFIGS],
        way="group",
        validate_only=True,
        resources=lambda m, _: [m.AlterConfigsResource(32, GROUP)],
    ),
    case(
        "incremental_alter_configs",
        1,
        TOPIC_DENIED,
        ON_TOPIC[Op.ALTER_CONFIGS],
        validate_only=True,
        resources=lambda m, _: [m.AlterConfigsResource(2, NAME)],
    ),
    case("describe_log_dirs", 4, CLUSTER_DENIED, ON_CLUSTER[D]),
    case(
        "create_partitions",
        3,
        TOPIC_DENIED,
        ON_TOPIC[Op.ALTER],
        validate_only=True,
        topics=lambda m, _: [m.CreatePartitionsTopic(NAME, 2)],
    ),
    case("delete_groups", 2, GROUP_DENIED, ON_GROUP[Op.DELETE], groups_names=[GROUP]),
    case("elect_leaders", 2, CLUSTER_DENIED, ON_CLUSTER[Op.ALTER], topic_partitions=None),
    case(
        "alter_partition_reassignments",
        0,
        CLUSTER_DENIED,
        ON_CLUSTER[Op.ALTER],
        topics=lambda m, _: [m.ReassignableTopic(NAME, [m.ReassignablePartition(0, None)])],
    ),
    case("list_partition_reassignments", 0, CLUSTER_DENIED, ON_CLUSTER[D], topics=None),
    case(
        "offset_delete",
        0,
        GROUP_DENIED,
        ON_GROUP[Op.DELETE],
        ON_TOPIC[R],
        group_id=GROUP,
        topics=lambda m, _: [m.OffsetDeleteRequestTopic(NAME, [m.OffsetDeleteRequestPartition(0)])],
    ),
    case("describe_client_quotas", 1, CLUSTER_DENIED, ON_CLUSTER[Op.DESCRIBE_CONFIGS]),
    case(
        "alter_client_quotas",
        1,
        CLUSTER_DENIED,
        ON_CLUSTER[Op.ALTER_CONFIGS],
        entries=lambda m, _: [
            m.RequestEntryData([m.RequestEntityData("user", "x")], [m.OpData("consumer_byte_rate", 1e9)])
        ],
    ),
    case("describe_user_scram_credentials", 0, CLUSTER_DENIED, ON_CLUSTER[D], users=None),
    case(
        "alter_user_scram_credentials",
        0,
        CLUSTER_DENIED,
        ON_CLUSTER[Op.ALTER],
        deletions=lambda m, _: [m.ScramCredentialDeletion("somebody", 1)],
    ),
    case("describe_cluster", 1, OPEN, endpoint_type=1),
    case("describe_producers", 0, TOPIC_DENIED, ON_TOPIC[R], topics=lambda m, _: [m.TopicRequest(NAME, [0])]),
    case("describe_transactions", 0, TID_DENIED, ON_TID[D], transactional_ids=[TID]),
    case("list_transactions", 0, OPEN),
    case(
        "consumer_group_heartbeat",
        0,
        GROUP_DENIED,
        ON_GROUP[R],
        group_id=GROUP,
        member_id="m",
        member_epoch=5,
    ),
    case(
        "consumer_group_heartbeat",
        0,
        TOPIC_DENIED,
        ON_GROUP[R],
        ON_TOPIC[D],
        way="topic",
        group_id=GROUP,
        member_id="m",
        member_epoch=5,
        subscribed_topic_names=[NAME],
    ),
    case("consumer_group_describe", 0, GROUP_DENIED, ON_GROUP[D], group_ids=[GROUP]),
    case(
        "describe_topic_partitions",
        0,
        TOPIC_DENIED,
        ON_TOPIC[D],
        response_partition_limit=9,
        topics=lambda m, _: [m.TopicRequest(NAME)],
    ),
    case(
        "share_group_heartbeat",
        1,
        GROUP_DENIED,
        ON_GROUP[R],
        ON_TOPIC[D],
        group_id=GROUP,
        member_id="m",
        member_epoch=5,
        subscribed_topic_names=[NAME],
    ),
    case("share_group_describe", 1, GROUP_DENIED, ON_GROUP[D], group_ids=[GROUP]),
    case(
        "share_fetch",
        1,
        GROUP_DENIED,
        ON_GROUP[R],
        ON_TOPIC[R],
        group_id=GROUP,
        member_id="m",
        max_records=1,
        max_bytes=1000,
        topics=lambda m, topic_id: [m.FetchTopic(topic_id, [m.FetchPartition(0)])],
    ),
    case(
        "share_acknowledge",
        1,
        GROUP_DENIED,
        ON_GROUP[R],
        ON_TOPIC[R],
        group_id=GROUP,
        member_id="m",
        share_session_epoch=1,
        topics=lambda m, topic_id: [],
    ),
    case(
        "describe_share_group_offsets",
        0,
        GROUP_DENIED,
        ON_GROUP[D],
        ON_TOPIC[D],
        groups=lambda m, _: [m.DescribeShareGroupOffsetsRequestGroup(GROUP, None)],
    ),
    case("alter_share_group_offsets", 0, GROUP_DENIED, ON_GROUP[R], ON_TOPIC[R], group_id=GROUP, topics=[]),
    case(
        "delete_share_group_offsets",
        0,
        GROUP_DENIED,
        ON_GROUP[Op.DELETE],
        ON_TOPIC[R],
        group_id=GROUP,
        topics=[],
    ),
]

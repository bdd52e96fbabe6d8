# Generated from kio's schemas by `make messages`: change tools/generator, not this file.
"""The messages of each Kafka API: one module each, the version an argument.

Every module has KEY, NAME, MIN_VERSION, MAX_VERSION and FLEXIBLE_FROM, a class for each struct with the
fields of all versions, and decode_request, encode_request, decode_response, encode_response. Data that
travels inside another message's bytes has no KEY, and only decode and encode.

A body starts behind the header. Decoding sets what a version lacks to its default and ignores bytes
behind the message; encoding leaves out what a version lacks. Wrong bytes raise ProtocolError, a version
that is not there UnsupportedVersion, a value that its field can't hold ValueError. Times are integers in
milliseconds, ids 16 bytes, records a view of the body; a tagged struct is None where it was left out.
"""

from typing import Final

MODULES: Final[dict[int, str]] = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    17: "sasl_handshake",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    24: "add_partitions_to_txn",
    25: "add_offsets_to_txn",
    26: "end_txn",
    27: "write_txn_markers",
    28: "txn_offset_commit",
    29: "describe_acls",
    30: "create_acls",
    31: "delete_acls",
    32: "describe_configs",
    33: "alter_configs",
    35: "describe_log_dirs",
    36: "sasl_authenticate",
    37: "create_partitions",
    42: "delete_groups",
    43: "elect_leaders",
    44: "incremental_alter_configs",
    45: "alter_partition_reassignments",
    46: "list_partition_reassignments",
    47: "offset_delete",
    48: "describe_client_quotas",
    49: "alter_client_quotas",
    50: "describe_user_scram_credentials",
    51: "alter_user_scram_credentials",
    60: "describe_cluster",
    61: "describe_producers",
    65: "describe_transactions",
    66: "list_transactions",
    68: "consumer_group_heartbeat",
    69: "consumer_group_describe",
    75: "describe_topic_partitions",
    76: "share_group_heartbeat",
    77: "share_group_describe",
    78: "share_fetch",
    79: "share_acknowledge",
    90: "describe_share_group_offsets",
    91: "alter_share_group_offsets",
    92: "delete_share_group_offsets",
}

"""The rights that each action, endpoint and stream asks for, written down anew from docs/security.md.

A case has a request that a caller with these rights can do, and what others are told. `n` is a queue of the
case's own: a topic and a subscription that SQS's CreateQueue has made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from postroad.security.resources import Operation as Op
from postroad.security.resources import ResourceType as Type
from postroad.wire.messages import offset_commit
from tests.clients.wait import until
from tests.gateway.security.asking import Outcome, rest, sqs
from tests.gateway.security.conftest import ADMIN, House, Right

R, W, D = Op.READ, Op.WRITE, Op.DESCRIBE
ALTER_CONFIGS = Op.ALTER_CONFIGS
FORBIDDEN: Final = "forbidden"
NOT_FOUND: Final = "not-found"
DENIED: Final = "AccessDenied"
NO_QUEUE: Final = "NonExistentQueue"
NOT_THERE: Final = "ResourceNotFoundException"
UNSUPPORTED: Final = "UnsupportedOperation"


def group(operation: Op, name: str = "n") -> Right:
    return operation, Type.GROUP, name


def topic(operation: Op, name: str = "n") -> Right:
    return operation, Type.TOPIC, name


def cluster(operation: Op) -> Right:
    return operation, Type.CLUSTER, "kafka-cluster"


class Place:
    """The queue of one case, and what was prepared of it."""

    def __init__(self, house: House, name: str) -> None:
        self.house = house
        self.name = name

    @property
    def url(self) -> str:
        return f"{self.house.url}/000000000000/{self.name}"

    def arn(self, suffix: str = "") -> str:
        return f"arn:aws:sqs:us-east-1:000000000000:{self.name}{suffix}"

    def right(self, right: Right) -> Right:
        """`n` is this place's queue, `n-…` something beside it."""
        operation, type_, name = right
        return operation, type_, self.name + name[1:] if name.startswith("n") else name

    def make(self, suffix: str = "", **attributes: str) -> None:
        made = sqs(self.house, ADMIN, "CreateQueue", QueueName=self.name + suffix, Attributes=attributes)
        assert made.status == 200, made

    def send(self, body: str = "hello") -> None:
        sent = sqs(self.house, ADMIN, "SendMessage", QueueUrl=self.url, MessageBody=body)
        assert sent.status == 200, sent

    def receipt(self, visibility_s: int = 60) -> str:
        """The receipt of a message that a super user holds."""
        self.send()
        found = sqs(
            self.house, ADMIN, "ReceiveMessage", QueueUrl=self.url, WaitTimeSeconds=20,
            VisibilityTimeout=visibility_s,
        )  # fmt: skip
        handle: str = found.content["Messages"][0]["ReceiptHandle"]
        return handle


Ask = Callable[[Place, "str | None", Any], Outcome]
"""The request of a user (None: of nobody), with what was prepared."""


class Case(NamedTuple):
    name: str
    ask: Ask
    rights: tuple[Right, ...]
    prepare: Callable[[Place], Any] = lambda _: None
    denial: str = DENIED  # what is told to a user without any rights
    success: str = ""  # the code of what a user with the rights is told; none: it is done

    def __str__(self) -> str:
        return self.name


def action(name: str, *rights: Right, **more: Any) -> Case:
    """An action of SQS; members that are functions are given the place and what was prepared."""
    of_case = {key: more.pop(key) for key in ("prepare", "denial", "success") if key in more}
    way = more.pop("way", "")
    members = more

    def ask(place: Place, user: str | None, prepared: Any) -> Outcome:
        given = {key: value(place, prepared) if callable(value) else value for key, value in members.items()}
        return sqs(place.house, user, name, **given)

    return Case(name + way, ask, rights, **of_case)


def endpoint(method: str, path: str, *rights: Right, body: Any = None, **more: Any) -> Case:
    """An endpoint of REST; `{n}` in its path is the queue's name, `{p}` what was prepared."""
    way = more.pop("way", "")
    headers = more.pop("headers", None)
    of_case = {"denial": FORBIDDEN, **more}

    def ask(place: Place, user: str | None, prepared: Any) -> Outcome:
        where = path.replace("{n}", place.name).replace("{p}", str(prepared))
        content = body(place, prepared) if callable(body) else body
        return rest(place.house, user, method, where, content, headers)

    return Case(f"{method} {path}{way}", ask, rights, **of_case)


def url(place: Place, _: Any) -> str:
    return place.url


def dead_letters(place: Place) -> None:
    """The queue is the dead-letter queue of another one, `n-src`."""
    place.make("-src", RedrivePolicy=f'{{"deadLetterTargetArn":"{place.arn()}","maxReceiveCount":1}}')


def another(prepare: Callable[[Place], None]) -> Callable[[Place], None]:
    """There is a queue `n-other`, too."""

    def both(place: Place) -> None:
        prepare(place)
        place.make("-other")

    return both


def entries(place: Place, prepared: Any) -> list[dict[str, Any]]:
    return [{"Id": "a", "ReceiptHandle": prepared, "VisibilityTimeout": 60}]


def sent_entries(place: Place, _: Any) -> list[dict[str, str]]:
    return [{"Id": "a", "MessageBody": "hello"}]


RECEIVE: Final = (group(R), topic(R))

SQS: Final = [
    action("SendMessage", topic(W), QueueUrl=url, MessageBody="hello"),
    action(
        "SendMessage", topic(W, "n-new"), topic(Op.CREATE, "n-new"), group(ALTER_CONFIGS, "n-new"),
        way="-to-new", QueueUrl=lambda place, _: place.url + "-new", MessageBody="hello",
    ),
    action("SendMessageBatch", topic(W), QueueUrl=url, Entries=sent_entries),
    action("ReceiveMessage", *RECEIVE, QueueUrl=url, prepare=Place.send, WaitTimeSeconds=0),
    action("DeleteMessage", *RECEIVE, QueueUrl=url, prepare=Place.receipt, ReceiptHandle=lambda _, p: p),
    action("DeleteMessageBatch", *RECEIVE, QueueUrl=url, prepare=Place.receipt, Entries=entries),
    action(
        "ChangeMessageVisibility", *RECEIVE, QueueUrl=url, prepare=Place.receipt, VisibilityTimeout=90,
        ReceiptHandle=lambda _, p: p,
    ),
    action("ChangeMessageVisibilityBatch", *RECEIVE, QueueUrl=url, prepare=Place.receipt, Entries=entries),
    action(
        "CreateQueue", topic(Op.CREATE, "n-new"), group(ALTER_CONFIGS, "n-new"),
        QueueName=lambda place, _: place.name + "-new",
    ),
    action("CreateQueue", group(D), way="-that-is-there", QueueName=lambda place, _: place.name),
    action("DeleteQueue", group(Op.DELETE), topic(Op.DELETE), QueueUrl=url),
    action("PurgeQueue", group(Op.DELETE), QueueUrl=url),
    action("GetQueueUrl", group(D), QueueName=lambda place, _: place.name, denial=NO_QUEUE),
    action("GetQueueUrl", topic(W), way="-to-send", QueueName=lambda place, _: place.name, denial=NO_QUEUE),
    action("GetQueueAttributes", group(D), QueueUrl=url, AttributeNames=["All"]),
    action("SetQueueAttributes", group(ALTER_CONFIGS), QueueUrl=url, Attributes={"VisibilityTimeout": "7"}),
    action(
        "SetQueueAttributes", group(ALTER_CONFIGS), topic(ALTER_CONFIGS), way="-retention", QueueUrl=url,
        Attributes={"MessageRetentionPeriod": "60"},
    ),
    action(
        "SetQueueAttributes", group(ALTER_CONFIGS), topic(W, "n-dead"), way="-redrive", QueueUrl=url,
        prepare=lambda place: place.make("-dead"),
        Attributes=lambda place, _: {
            "RedrivePolicy": f'{{"deadLetterTargetArn":"{place.arn("-dead")}","maxReceiveCount":3}}'
        },
    ),
    action(
        "SetQueueAttributes", group(ALTER_CONFIGS), way="-policy", QueueUrl=url, success=UNSUPPORTED,
        Attributes={"Policy": '{"Statement": []}'},
    ),
    action("TagQueue", group(ALTER_CONFIGS), QueueUrl=url, Tags={"a": "b"}),
    action("UntagQueue", group(ALTER_CONFIGS), QueueUrl=url, TagKeys=["a"]),
    action("ListQueueTags", group(D), QueueUrl=url),
    action(
        "AddPermission", group(ALTER_CONFIGS), QueueUrl=url, success=UNSUPPORTED, Label="l",
        AWSAccountIds=["123456789012"], Actions=["SendMessage"],
    ),
    action("RemovePermission", group(ALTER_CONFIGS), QueueUrl=url, success=UNSUPPORTED, Label="l"),
    action("ListDeadLetterSourceQueues", group(D), QueueUrl=url),
    action(
        "StartMessageMoveTask", *RECEIVE, prepare=dead_letters, SourceArn=lambda place, _: place.arn(),
        denial=NOT_THERE,
    ),
    action(
        "StartMessageMoveTask", *RECEIVE, topic(W, "n-other"), way="-to-another", denial=NOT_THERE,
        prepare=another(dead_letters),
        SourceArn=lambda place, _: place.arn(), DestinationArn=lambda place, _: place.arn("-other"),
    ),
    action("ListMessageMoveTasks", group(D), SourceArn=lambda place, _: place.arn(), denial=NOT_THERE),
]  # fmt: skip


def subscription(place: Place) -> None:
    """One over REST, `n-sub`, on the queue's topic."""
    made = rest(
        place.house, ADMIN, "POST", "/v1/subscriptions",
        {"name": f"{place.name}-sub", "topics": [place.name], "start": "earliest"},
    )  # fmt: skip
    assert made.status == 201, made


def settled(place: Place) -> str:
    """The receipt of a message that was received over REST."""
    place.send()
    found = rest(place.house, ADMIN, "POST", f"/v1/subscriptions/{place.name}/receive", {"wait_ms": 20_000})
    receipt: str = found.content["messages"][0]["receipt"]
    return receipt


def message_id(place: Place) -> str:
    sent = rest(place.house, ADMIN, "POST", f"/v1/topics/{place.name}/messages", {"value": "hello"})
    found: str = sent.content["messages"][0]["id"]
    return found


def receipts(place: Place, prepared: Any) -> dict[str, Any]:
    return {"receipts": [prepared]}


def letters(place: Place) -> None:
    """One dead letter of the queue, in `n.dead`."""
    receipt = settled(place)
    path = f"/v1/subscriptions/{place.name}/reject"
    rejected = rest(place.house, ADMIN, "POST", path, {"receipts": [receipt]})
    assert rejected.status == 200, rejected
    listed = f"/v1/subscriptions/{place.name}/dead-letters"
    until(lambda: _is_there(rest(place.house, ADMIN, "GET", listed)), "the letter is in its topic")


def somebody(place: Place) -> str:
    """A user `n-user`; its access key."""
    place.house.add_user(f"{place.name}-user")
    return place.house.keys[f"{place.name}-user"]


RULE: Final = {
    "permission": "allow", "principal": "User:somebody", "operation": "read", "type": "topic", "name": "{n}",
}  # fmt: skip


def rule(place: Place) -> dict[str, str]:
    return {**RULE, "name": place.name}


def ruled(place: Place) -> None:
    made = rest(place.house, ADMIN, "POST", "/v1/acls", {"acls": [rule(place)]})
    assert made.status == 201, made


def _is_there(found: Outcome) -> bool:
    return found.status == 200 and bool(found.content["letters"])


def redrive(place: Place) -> str:
    """The id of a redrive."""
    letters(place)
    path = f"/v1/subscriptions/{place.name}/dead-letters/redrive"
    begun = rest(place.house, ADMIN, "POST", path, {"dry_run": True})
    assert begun.status == 202, begun
    found: str = begun.content["id"]
    return found


def letter_id(place: Place) -> str:
    """The id of the queue's dead letter."""
    letters(place)
    listed = rest(place.house, ADMIN, "GET", f"/v1/subscriptions/{place.name}/dead-letters")
    found: str = listed.content["letters"][0]["id"]
    return found


def consumer_group(place: Place) -> None:
    """`n-readers`, which has committed an offset."""
    partition = offset_commit.OffsetCommitRequestPartition(0, 0, -1)
    topics = [offset_commit.OffsetCommitRequestTopic(place.name, bytes(16), [partition])]
    request = offset_commit.OffsetCommitRequest(place.name + "-readers", -1, topics=topics)
    answer = place.house.node.call(offset_commit, 9, request)
    assert answer.topics[0].partitions[0].error_code == 0


def hook(place: Place) -> None:
    path = f"/v1/subscriptions/{place.name}/webhook"
    made = rest(place.house, ADMIN, "PUT", path, HOOK)
    assert made.status == 201, made


# Nobody listens there: the hook is kept, with a note.
HOOK: Final = {"url": "http://127.0.0.1:9/hook", "timeout_ms": 100}

SUBSCRIPTION: Final = "/v1/subscriptions/{n}"


def new_subscription(**fields: Any) -> Callable[[Place, Any], dict[str, Any]]:
    def body(place: Place, _: Any) -> dict[str, Any]:
        named = {key: value.replace("{n}", place.name) for key, value in fields.items()}
        return {"name": f"{place.name}-new", "topics": [place.name], **named}

    return body


REST: Final = [
    endpoint(
        "POST", "/v1/topics", topic(Op.CREATE, "n-new"), body=lambda place, _: {"name": f"{place.name}-new"}
    ),
    endpoint(
        "POST", "/v1/topics", cluster(Op.CREATE), way="-by-cluster",
        body=lambda place, _: {"name": f"{place.name}-new2"},
    ),
    endpoint("GET", "/v1/topics/{n}", topic(D)),
    endpoint(
        "PATCH", "/v1/topics/{n}", topic(ALTER_CONFIGS), topic(D), body={"configs": {"retention.ms": "9999"}}
    ),
    endpoint("PATCH", "/v1/topics/{n}", topic(Op.ALTER), way="-partitions", body={"partitions": 2}),
    endpoint("DELETE", "/v1/topics/{n}", topic(Op.DELETE)),
    endpoint("GET", "/v1/topics/{n}/messages?filter=key=null", topic(R), prepare=Place.send),
    endpoint("POST", "/v1/topics/{n}/partitions", topic(Op.ALTER), body={"count": 2}),
    endpoint("POST", "/v1/topics/{n}/delete-records", topic(Op.DELETE), body={"all": True}),
    endpoint("POST", "/v1/topics/{n}/messages", topic(W), body={"value": "hello"}),
    endpoint(
        "POST", "/v1/topics/{n}-new/messages", topic(W, "n-new"), topic(Op.CREATE, "n-new"), way="-new",
        body={"value": "hello"},
    ),
    endpoint(
        "POST", "/v1/topics/{n}/messages", topic(W), way="-once", body={"value": "hello"},
        headers={"Idempotency-Key": "k"},
    ),
    endpoint(
        "POST", "/v1/subscriptions", group(ALTER_CONFIGS, "n-new"), topic(R), body=new_subscription()
    ),
    endpoint(
        "POST", "/v1/subscriptions", group(ALTER_CONFIGS, "n-new"), topic(R), topic(W, "n-letters"),
        way="-letters", body=new_subscription(dead_letter_topic="{n}-letters"),
    ),
    endpoint("GET", SUBSCRIPTION, group(D), topic(D)),
    endpoint("PATCH", SUBSCRIPTION, group(ALTER_CONFIGS), topic(D), body={"lock_ms": 5000}),
    endpoint(
        "PATCH", SUBSCRIPTION, group(ALTER_CONFIGS), group(Op.DELETE), topic(D), way="-lossy",
        body={"dead_letters": False},
    ),
    endpoint(
        "PATCH", SUBSCRIPTION, group(ALTER_CONFIGS), topic(D), topic(R, "n-more"), way="-more",
        prepare=lambda place: place.make("-more"),
        body=lambda place, _: {"topics": [place.name, f"{place.name}-more"]},
    ),
    endpoint("DELETE", SUBSCRIPTION + "-sub", group(Op.DELETE, "n-sub"), prepare=subscription),
    endpoint("POST", SUBSCRIPTION + "/receive", *RECEIVE, body={}, prepare=Place.send),
    endpoint("POST", SUBSCRIPTION + "/acknowledge", *RECEIVE, body=receipts, prepare=settled),
    endpoint("POST", SUBSCRIPTION + "/release", *RECEIVE, body=receipts, prepare=settled),
    endpoint("POST", SUBSCRIPTION + "/extend", *RECEIVE, body=receipts, prepare=settled),
    endpoint("POST", SUBSCRIPTION + "/reject", *RECEIVE, body=receipts, prepare=settled),
    endpoint("POST", SUBSCRIPTION + "/seek", group(Op.DELETE), topic(R), body={"to": "latest"}),
    endpoint("POST", SUBSCRIPTION + "/purge", group(Op.DELETE), topic(R), body={}),
    endpoint("GET", SUBSCRIPTION + "/messages", group(D), topic(R)),
    endpoint("GET", "/v1/messages/{p}", topic(R), prepare=message_id, denial=NOT_FOUND),
    endpoint("GET", SUBSCRIPTION + "/dead-letters", group(D), topic(R, "n.dead"), prepare=letters),
    endpoint(
        "POST", SUBSCRIPTION + "/dead-letters/redrive", *RECEIVE, topic(R, "n.dead"), prepare=letters,
        body={"dry_run": True},
    ),
    endpoint(
        "POST", SUBSCRIPTION + "/dead-letters/redrive", *RECEIVE, topic(R, "n.dead"), topic(W, "n-other"),
        way="-to-another", prepare=another(letters),
        body=lambda place, _: {"dry_run": True, "to": f"{place.name}-other"},
    ),
    endpoint(
        "POST", SUBSCRIPTION + "/dead-letters/{p}/redrive", *RECEIVE, topic(R, "n.dead"), topic(W),
        prepare=letter_id, body={},
    ),
    endpoint(
        "POST", SUBSCRIPTION + "/dead-letters/{p}/redrive", *RECEIVE, topic(R, "n.dead"), topic(W, "n-other"),
        way="-to-another", prepare=lambda place: (place.make("-other"), letter_id(place))[1],
        body=lambda place, _: {"to": f"{place.name}-other", "value": "mended"},
    ),
    endpoint(
        "DELETE", SUBSCRIPTION + "/dead-letters/{p}", *RECEIVE, topic(R, "n.dead"), prepare=letter_id
    ),
    endpoint("GET", SUBSCRIPTION + "/consumers", group(D), topic(D)),
    endpoint("GET", "/v1/redrives/{p}", group(D), prepare=redrive, denial=NOT_FOUND),
    endpoint("POST", "/v1/redrives/{p}/cancel", group(R), prepare=redrive, denial=NOT_FOUND),
    endpoint("GET", "/v1/consumer-groups/{n}-readers", group(D, "n-readers"), prepare=consumer_group),
    endpoint(
        "POST", "/v1/consumer-groups/{n}-readers/reset", group(R, "n-readers"), topic(R),
        prepare=consumer_group, body={"to": "latest"},
    ),
    endpoint(
        "DELETE", "/v1/consumer-groups/{n}-readers", group(Op.DELETE, "n-readers"), prepare=consumer_group
    ),
    endpoint("GET", "/v1/cluster", cluster(D)),
    endpoint("GET", "/v1/users", cluster(D)),
    endpoint("GET", "/v1/acls", cluster(D)),
    endpoint("GET", "/v1/access?operation=write&name={n}", cluster(D)),
    # Nodes are asked in the caller's name. There is no such node, so nothing else is disturbed.
    endpoint("POST", "/v1/cluster/nodes/9/drain", cluster(Op.ALTER), success=NOT_FOUND),
    endpoint("POST", "/v1/cluster/nodes/9/cancel-drain", cluster(Op.ALTER), success=NOT_FOUND),
    endpoint("POST", "/v1/cluster/elect-preferred-leaders", cluster(Op.ALTER)),
    endpoint("POST", "/v1/users", cluster(Op.ALTER), body=lambda place, _: {"name": f"{place.name}-made"}),
    endpoint("POST", "/v1/users/{n}-user/password", cluster(Op.ALTER), prepare=somebody, body={}),
    endpoint("DELETE", "/v1/users/{n}-user", cluster(Op.ALTER), prepare=somebody),
    endpoint("POST", "/v1/users/{n}-user/keys", cluster(Op.ALTER), prepare=somebody),
    endpoint("POST", "/v1/access-keys/{p}/disable", cluster(Op.ALTER), prepare=somebody),
    endpoint("POST", "/v1/access-keys/{p}/enable", cluster(Op.ALTER), prepare=somebody),
    endpoint("DELETE", "/v1/access-keys/{p}", cluster(Op.ALTER), prepare=somebody),
    endpoint("POST", "/v1/acls", cluster(Op.ALTER), body=lambda place, _: {"acls": [rule(place)]}),
    endpoint("DELETE", "/v1/acls?" + urlencode(RULE, safe="{}"), cluster(Op.ALTER), prepare=ruled),
    endpoint("GET", SUBSCRIPTION + "/webhook", group(Op.DESCRIBE_CONFIGS), prepare=hook),
    endpoint("PUT", SUBSCRIPTION + "/webhook", group(ALTER_CONFIGS), *RECEIVE, body=HOOK),
    endpoint(
        "PUT", SUBSCRIPTION + "/webhook", group(ALTER_CONFIGS), *RECEIVE, topic(W, "n-replies"),
        way="-replies", prepare=lambda place: place.make("-replies"),
        body=lambda place, _: {**HOOK, "reply_topic": f"{place.name}-replies"},
    ),
    endpoint(
        "POST", SUBSCRIPTION + "/webhook/verify", group(ALTER_CONFIGS), *RECEIVE, prepare=hook, body=None
    ),
    endpoint("GET", SUBSCRIPTION + "/webhook/deliveries", group(Op.DESCRIBE_CONFIGS), prepare=hook),
    endpoint("POST", SUBSCRIPTION + "/webhook/test", group(ALTER_CONFIGS), prepare=hook),
    endpoint(
        "POST", SUBSCRIPTION + "/webhook/rotate-secret", group(ALTER_CONFIGS), group(R), prepare=hook
    ),
    endpoint("DELETE", SUBSCRIPTION + "/webhook", group(ALTER_CONFIGS), prepare=hook),
    endpoint(
        "POST", "/v1/transactions", *RECEIVE, topic(W), prepare=settled,
        body=lambda place, p: {"acknowledge": [p], "publish": [{"topic": place.name, "value": "done"}]},
    ),
    endpoint("GET", "/metrics", cluster(D), denial=""),
]  # fmt: skip

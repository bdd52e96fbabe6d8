"""The query protocol of older SDKs, by raw requests."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import pytest

from tests.gateway.conftest import RunningGateway
from tests.gateway.sqs.conftest import WAIT_S

NAMESPACE = "{http://queue.amazonaws.com/doc/2012-11-05/}"


class Answer:
    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.root = ElementTree.fromstring(body)

    def all(self, path: str) -> list[str]:
        steps = "/".join(NAMESPACE + step for step in path.split("/"))
        return [found.text or "" for found in self.root.findall(".//" + steps)]

    def one(self, path: str) -> str:
        (found,) = self.all(path)
        return found


def ask(url: str, action: str, method: str = "POST", **form: Any) -> Answer:
    data = urlencode({"Action": action, "Version": "2012-11-05", **{k: str(v) for k, v in form.items()}})
    if method == "GET":
        request = Request(f"{url}?{data}")
    else:
        request = Request(url, data.encode(), {"Content-Type": "application/x-www-form-urlencoded"})
    try:
        with urlopen(request, timeout=60) as response:
            return Answer(response.status, response.read())
    except HTTPError as refused:
        return Answer(refused.code, refused.read())


@pytest.fixture
def url(gateway: RunningGateway, name: str) -> str:
    form = {"QueueName": name, "Attribute.1.Name": "VisibilityTimeout", "Attribute.1.Value": "45"}
    form |= {"Tag.1.Key": "team", "Tag.1.Value": "mail & post"}
    answer = ask(gateway.url, "CreateQueue", **form)
    assert answer.status == 200
    return answer.one("CreateQueueResult/QueueUrl")


def test_a_message_is_sent_received_and_deleted(gateway: RunningGateway, url: str) -> None:
    body = "hello <&>\r\n„Grüße“"
    sent = ask(
        url,
        "SendMessage",
        MessageBody=body,
        **{
            "MessageAttribute.1.Name": "n",
            "MessageAttribute.1.Value.DataType": "Number",
            "MessageAttribute.1.Value.StringValue": "5",
            "MessageAttribute.2.Name": "b",
            "MessageAttribute.2.Value.DataType": "Binary",
            "MessageAttribute.2.Value.BinaryValue": "AAE=",
        },
    )
    assert sent.status == 200
    assert sent.one("SendMessageResult/MD5OfMessageBody") == hashlib.md5(body.encode()).hexdigest()
    got = ask(
        gateway.url,
        "ReceiveMessage",
        QueueUrl=url,
        MaxNumberOfMessages=10,
        WaitTimeSeconds=WAIT_S,
        **{"AttributeName.1": "All", "MessageAttributeName.1": "All"},
    )
    assert got.one("ReceiveMessageResult/Message/Body") == body
    assert got.one("Message/MessageId") == sent.one("SendMessageResult/MessageId")
    assert "ApproximateReceiveCount" in got.all("Message/Attribute/Name")
    assert got.all("MessageAttribute/Name") == ["n", "b"]
    assert got.all("MessageAttribute/Value/DataType") == ["Number", "Binary"]
    assert got.one("MessageAttribute/Value/StringValue") == "5"
    assert got.one("MessageAttribute/Value/BinaryValue") == "AAE="
    deleted = ask(url, "DeleteMessage", ReceiptHandle=got.one("Message/ReceiptHandle"))
    assert deleted.status == 200
    assert deleted.root.tag == NAMESPACE + "DeleteMessageResponse"
    assert deleted.one("ResponseMetadata/RequestId")
    assert ask(url, "ReceiveMessage").all("Message") == []


def test_batches_are_numbered(url: str) -> None:
    entry = "SendMessageBatchRequestEntry"
    form = {f"{entry}.{n}.Id": f"e{n}" for n in range(1, 11)}
    form |= {f"{entry}.{n}.MessageBody": str(n) for n in range(1, 11)}
    form[f"{entry}.3.DelaySeconds"] = "901"
    answer = ask(url, "SendMessageBatch", **form)
    assert len(answer.all("SendMessageBatchResult/SendMessageBatchResultEntry/MessageId")) == 9
    assert answer.one("BatchResultErrorEntry/Id") == "e3"
    assert answer.one("BatchResultErrorEntry/SenderFault") == "true"
    handles: list[str] = []
    while len(handles) < 9:
        got = ask(url, "ReceiveMessage", MaxNumberOfMessages=9 - len(handles), WaitTimeSeconds=WAIT_S)
        assert got.all("Message/ReceiptHandle"), handles
        handles += got.all("Message/ReceiptHandle")
    form = {}
    for number, handle in enumerate(handles, 1):
        form |= {f"ChangeMessageVisibilityBatchRequestEntry.{number}.Id": str(number)}
        form |= {f"ChangeMessageVisibilityBatchRequestEntry.{number}.ReceiptHandle": handle}
        form |= {f"ChangeMessageVisibilityBatchRequestEntry.{number}.VisibilityTimeout": "60"}
    changed = ask(url, "ChangeMessageVisibilityBatch", **form)
    assert len(changed.all("ChangeMessageVisibilityBatchResultEntry/Id")) == 9
    form = {}
    for number, handle in enumerate(handles, 1):
        form |= {f"DeleteMessageBatchRequestEntry.{number}.Id": str(number)}
        form |= {f"DeleteMessageBatchRequestEntry.{number}.ReceiptHandle": handle}
    assert len(ask(url, "DeleteMessageBatch", **form).all("DeleteMessageBatchResultEntry/Id")) == 9


def test_queues_are_described(gateway: RunningGateway, url: str, name: str) -> None:
    form = {"AttributeName.1": "VisibilityTimeout", "AttributeName.2": "QueueArn"}
    found = ask(url, "GetQueueAttributes", **form)
    assert dict(zip(found.all("Attribute/Name"), found.all("Attribute/Value"), strict=True)) == {
        "VisibilityTimeout": "45",
        "QueueArn": f"arn:aws:sqs:us-east-1:000000000000:{name}",
    }
    assert ask(url, "ListQueueTags").one("Tag/Value") == "mail & post"
    ask(url, "UntagQueue", **{"TagKey.1": "team"})
    assert ask(url, "ListQueueTags").all("Tag") == []
    listed = ask(gateway.url, "ListQueues", QueueNamePrefix=name)
    assert listed.one("ListQueuesResult/QueueUrl") == url
    form = {"AWSAccountId.1": "123456789012", "ActionName.1": "SendMessage", "Label": "l"}
    assert ask(url, "AddPermission", **form).status == 200
    assert ask(url, "DeleteQueue").status == 200


def test_empty_lists_are_written_with_the_name_of_the_json_member(url: str) -> None:
    assert ask(url, "ReceiveMessage", MessageAttributeNames="", AttributeNames="").status == 200
    assert ask(url, "SendMessageBatch", Entries="").one("Error/Code").endswith("EmptyBatchRequest")


def test_actions_that_concern_no_queue_are_not_asked_of_one(url: str, name: str) -> None:
    for action in ("ListQueues", "CreateQueue"):
        refused = ask(url, action, "GET", QueueName=name)
        assert (refused.status, refused.one("Error/Code")) == (400, "InvalidAction")


def test_a_get_of_a_queue_without_an_action_is_an_unknown_operation(url: str) -> None:
    with pytest.raises(HTTPError) as refused:
        urlopen(url, timeout=60)
    assert refused.value.code == 404
    assert refused.value.read() == b"<UnknownOperationException/>\n"


def ask_for_json(url: str, **form: str) -> tuple[int, Any]:
    request = Request(f"{url}?{urlencode(form)}", headers={"Accept": "application/json"})
    try:
        with urlopen(request, timeout=60) as response:
            assert response.headers["Content-Type"].startswith("application/json")
            return response.status, json.loads(response.read())
    except HTTPError as refused:
        return refused.code, json.loads(refused.read())


def test_who_accepts_json_alone_gets_json(gateway: RunningGateway, url: str, name: str) -> None:
    ask(url, "SendMessage", MessageBody="a\rb")
    status, said = ask_for_json(url, Action="ReceiveMessage", WaitTimeSeconds=str(WAIT_S))
    assert status == 200
    (message,) = said["ReceiveMessageResponse"]["ReceiveMessageResult"]["messages"]
    assert message["Body"] == "a\rb"
    _, said = ask_for_json(url, **{"Action": "GetQueueAttributes", "AttributeName.1": "VisibilityTimeout"})
    attributes = said["GetQueueAttributesResponse"]["GetQueueAttributesResult"]["Attributes"]
    assert attributes == [{"Name": "VisibilityTimeout", "Value": "45"}]
    _, said = ask_for_json(gateway.url, Action="ListQueues", QueueNamePrefix=name)
    assert said["ListQueuesResponse"]["ListQueuesResult"]["queueUrls"] == [url]
    assert said["ListQueuesResponse"]["ResponseMetadata"]["RequestId"]
    status, said = ask_for_json(url, Action="Fly")
    assert (status, said["Error"]["Code"]) == (400, "InvalidAction")


def test_a_get_is_a_request_too(gateway: RunningGateway, url: str, name: str) -> None:
    assert ask(gateway.url, "GetQueueUrl", "GET", QueueName=name).one("GetQueueUrlResult/QueueUrl") == url
    assert ask(url, "SendMessage", "GET", MessageBody="by GET").status == 200


def test_an_empty_result_is_an_element_and_no_result_is_none(gateway: RunningGateway, url: str) -> None:
    """Older versions of boto3 raise KeyError where the element is missing."""
    ask(url, "UntagQueue", **{"TagKey.1": "team"})
    for action, form in (
        ("ReceiveMessage", {}),
        ("GetQueueAttributes", {}),
        ("ListQueueTags", {}),
        ("ListQueues", {"QueueNamePrefix": "there-is-no-such"}),
        ("ListDeadLetterSourceQueues", {}),
    ):
        asked = gateway.url if action == "ListQueues" else url
        assert ask(asked, action, **form).all(f"{action}Result") == [""], action
    for action, form in (("PurgeQueue", {}), ("UntagQueue", {"TagKey.1": "x"}), ("DeleteQueue", {})):
        assert ask(url, action, **form).all(f"{action}Result") == [], action


@pytest.mark.parametrize(
    ("action", "form", "status", "code"),
    [
        ("GetQueueUrl", {"QueueName": "nowhere"}, 400, "AWS.SimpleQueueService.NonExistentQueue"),
        ("GetQueueUrl", {}, 400, "MissingParameter"),
        ("Fly", {}, 400, "InvalidAction"),
        ("", {}, 400, "MissingAction"),
        (
            "SendMessage",
            {"QueueUrl": "x", "MessageBody": "y", "DelaySeconds": "soon"},
            400,
            "InvalidParameterValue",
        ),
        (
            "SendMessage",
            {"QueueUrl": "x", "MessageBody": "y", "MessageAttribute.1.Value": "v"},
            400,
            "MissingParameter",
        ),
        ("CreateQueue", {"QueueName": "q", "Attribute.one.Name": "v"}, 400, "MalformedQueryString"),
        ("CreateQueue", {"QueueName": "q", "QueueName.1": "v"}, 400, "MalformedQueryString"),
        ("CreateQueue", {"QueueName.1": "v", "QueueName": "q"}, 400, "MalformedQueryString"),
        ("CreateQueue", {"." * 20: "v"}, 400, "MalformedQueryString"),
    ],
)
def test_errors_are_xml(
    gateway: RunningGateway, action: str, form: dict[str, str], status: int, code: str
) -> None:
    answer = ask(gateway.url, action, **form)
    assert answer.status == status
    assert answer.one("Error/Code") == code
    assert answer.one("Error/Type") == "Sender"
    assert answer.one("Error/Message")


@pytest.mark.parametrize("character", ["\0", "\x1f", "\ufffe", "\uffff"])
def test_what_xml_can_not_hold_is_replaced_in_errors(gateway: RunningGateway, character: str) -> None:
    answer = ask(gateway.url, f"No{character}Action")
    assert answer.one("Error/Code") == "InvalidAction"
    assert "No\ufffdAction" in answer.one("Error/Message")

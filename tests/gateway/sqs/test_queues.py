"""CreateQueue to DeleteQueue, as boto3 sees them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from postroad.client import subscriptions, topics
from postroad.errors import UnknownTopicOrPartition
from postroad.gateway import sqs as dialect
from tests.gateway.conftest import RunningGateway, StartGateway
from tests.gateway.sqs.conftest import MakeQueue, arn_of, attributes_of, connect, delete, receive, receive_all


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    code: str = error.value.response["Error"]["Code"]
    return code


def test_a_queue_url_is_built_from_the_address_that_the_client_used(
    sqs: Any, gateway: RunningGateway, name: str
) -> None:
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    assert url == f"{gateway.url}/000000000000/{name}"
    assert sqs.get_queue_url(QueueName=name)["QueueUrl"] == url


def test_creating_a_queue_again_with_the_same_attributes_changes_nothing(sqs: Any, name: str) -> None:
    wanted = {"VisibilityTimeout": "77", "DelaySeconds": "3", "Policy": '{"Version": "2012-10-17"}'}
    url = sqs.create_queue(QueueName=name, Attributes=wanted)["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="stays", DelaySeconds=0)
    assert sqs.create_queue(QueueName=name, Attributes=wanted)["QueueUrl"] == url
    assert sqs.create_queue(QueueName=name)["QueueUrl"] == url
    assert receive(sqs, url)[0]["Body"] == "stays"


def test_creating_a_queue_with_other_attributes_is_refused(sqs: Any, name: str) -> None:
    sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "77"})
    with pytest.raises(sqs.exceptions.QueueNameExists) as error:
        sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "78"})
    assert code_of(error) == "QueueAlreadyExists"


@pytest.mark.parametrize("wrong", ["with space", "dot.ted", "a" * 81, "ümlaut", ".fifo", "a/b"])
def test_a_name_that_sqs_does_not_take_is_refused(sqs: Any, wrong: str) -> None:
    with pytest.raises(ClientError) as error:
        sqs.create_queue(QueueName=wrong)
    assert code_of(error) == "InvalidParameterValue"


def test_a_fifo_queue_needs_its_suffix(sqs: Any, name: str) -> None:
    with pytest.raises(ClientError) as error:
        sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})
    assert code_of(error) == "InvalidParameterValue"


@pytest.mark.parametrize("attributes", [{}, {"FifoQueue": "false"}])
def test_the_suffix_needs_a_fifo_queue(sqs: Any, name: str, attributes: dict[str, str]) -> None:
    with pytest.raises(ClientError) as error:
        sqs.create_queue(QueueName=name + ".fifo", Attributes=attributes)
    assert code_of(error) == "InvalidParameterValue"


def test_a_standard_queue_knows_no_attributes_of_fifo_queues(sqs: Any, name: str) -> None:
    for attribute, value in (("FifoQueue", "false"), ("ContentBasedDeduplication", "false")):
        with pytest.raises(sqs.exceptions.InvalidAttributeName):
            sqs.create_queue(QueueName=name, Attributes={attribute: value})


def test_unknown_attributes_and_wrong_values_have_their_own_errors(sqs: Any, queue: str) -> None:
    with pytest.raises(sqs.exceptions.InvalidAttributeName) as error:
        sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Colour": "red"})
    assert code_of(error) == "InvalidAttributeName"
    with pytest.raises(sqs.exceptions.InvalidAttributeName):
        sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["Colour"])
    for wrong in (
        {"VisibilityTimeout": "43201"},
        {"VisibilityTimeout": "-1"},
        {"VisibilityTimeout": "²"},
        {"DelaySeconds": "901"},
        {"ReceiveMessageWaitTimeSeconds": "21"},
        {"MessageRetentionPeriod": "59"},
        {"MaximumMessageSize": "1023"},
        {"Policy": "no json"},
        {"RedriveAllowPolicy": '{"redrivePermission": "perhaps"}'},
    ):
        with pytest.raises(sqs.exceptions.InvalidAttributeValue) as error:
            sqs.set_queue_attributes(QueueUrl=queue, Attributes=wrong)
        assert code_of(error) == "InvalidAttributeValue"


def test_attributes_are_configs_of_the_subscription_and_its_topic(
    sqs: Any, gateway: RunningGateway, name: str, new_queue: MakeQueue
) -> None:
    queue = new_queue(VisibilityTimeout="120", MessageRetentionPeriod="3600")
    client = gateway.gateway.client
    group = {entry.name: entry.value for entry in gateway.run(subscriptions.config(client, name))}
    topic = {entry.name: entry.value for entry in gateway.run(topics.describe_config(client, name))}
    assert group["share.record.lock.duration.ms"] == "120000"
    assert group["share.delivery.count.limit"] == "0"
    assert group["postroad.topics"] == name
    assert topic["retention.ms"] == "3600000"
    sqs.set_queue_attributes(
        QueueUrl=queue, Attributes={"VisibilityTimeout": "5", "MessageRetentionPeriod": "60"}
    )
    found = attributes_of(sqs, queue)
    assert (found["VisibilityTimeout"], found["MessageRetentionPeriod"]) == ("5", "60")


def test_all_attributes_are_told(sqs: Any, queue: str, name: str) -> None:
    found = attributes_of(sqs, queue)
    assert found["QueueArn"] == f"arn:aws:sqs:eu-west-1:000000000000:{name}"
    assert int(found["CreatedTimestamp"]) > 1_700_000_000
    assert found["MaximumMessageSize"] == "1048576"
    assert found["MessageRetentionPeriod"] == "345600"
    assert found["VisibilityTimeout"] == "30"
    assert "FifoQueue" not in found
    assert "RedrivePolicy" not in found
    assert attributes_of(sqs, queue, "DelaySeconds") == {"DelaySeconds": "0"}
    assert "Attributes" not in sqs.get_queue_attributes(QueueUrl=queue)


def test_counts_are_honest(sqs: Any, queue: str) -> None:
    for number in range(5):
        sqs.send_message(QueueUrl=queue, MessageBody=str(number), DelaySeconds=60 if number == 4 else 0)
    held = receive(sqs, queue, 2)
    found = attributes_of(sqs, queue)
    assert found["ApproximateNumberOfMessages"] == str(4 - len(held))
    assert found["ApproximateNumberOfMessagesNotVisible"] == str(len(held))
    assert found["ApproximateNumberOfMessagesDelayed"] == "1"
    delete(sqs, queue, held[0])
    assert attributes_of(sqs, queue)["ApproximateNumberOfMessagesNotVisible"] == str(len(held) - 1)


def test_queues_are_listed_by_prefix_and_in_pages(sqs: Any, name: str, new_queue: MakeQueue) -> None:
    urls = sorted(new_queue(f"-{number}") for number in range(5))
    assert sqs.list_queues(QueueNamePrefix=name)["QueueUrls"] == urls
    assert "QueueUrls" not in sqs.list_queues(QueueNamePrefix="nothing-has-this-name")
    pages = sqs.get_paginator("list_queues").paginate(QueueNamePrefix=name, PaginationConfig={"PageSize": 2})
    assert [len(page["QueueUrls"]) for page in pages] == [2, 2, 1]
    with pytest.raises(ClientError) as error:
        sqs.list_queues(QueueNamePrefix=name, MaxResults=2, NextToken="\0not one")
    assert code_of(error) == "InvalidParameterValue"


def test_a_queue_that_does_not_exist_is_told_by_every_action(sqs: Any) -> None:
    url = "http://localhost/000000000000/nowhere"
    handle = "h"
    for call in (
        lambda: sqs.get_queue_url(QueueName="nowhere"),
        lambda: sqs.delete_queue(QueueUrl=url),
        lambda: sqs.purge_queue(QueueUrl=url),
        lambda: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"]),
        lambda: sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "1"}),
        lambda: sqs.tag_queue(QueueUrl=url, Tags={"a": "b"}),
        lambda: sqs.untag_queue(QueueUrl=url, TagKeys=["a"]),
        lambda: sqs.list_queue_tags(QueueUrl=url),
        lambda: sqs.add_permission(QueueUrl=url, Label="l", AWSAccountIds=["1" * 12], Actions=["*"]),
        lambda: sqs.remove_permission(QueueUrl=url, Label="l"),
        lambda: sqs.list_dead_letter_source_queues(QueueUrl=url),
        lambda: sqs.send_message(QueueUrl=url, MessageBody="x"),
        lambda: sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": "1", "MessageBody": "x"}]),
        lambda: sqs.receive_message(QueueUrl=url),
        lambda: sqs.delete_message(QueueUrl=url, ReceiptHandle=handle),
        lambda: sqs.delete_message_batch(QueueUrl=url, Entries=[{"Id": "1", "ReceiptHandle": handle}]),
        lambda: sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=1),
        lambda: sqs.change_message_visibility_batch(
            QueueUrl=url, Entries=[{"Id": "1", "ReceiptHandle": handle, "VisibilityTimeout": 1}]
        ),
    ):
        with pytest.raises(sqs.exceptions.QueueDoesNotExist) as error:
            call()
        assert code_of(error) == "AWS.SimpleQueueService.NonExistentQueue"


def test_a_deleted_queue_takes_its_topic_along(
    sqs: Any, gateway: RunningGateway, queue: str, name: str
) -> None:
    sqs.delete_queue(QueueUrl=queue)
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        sqs.get_queue_url(QueueName=name)
    client = gateway.gateway.client
    with pytest.raises(UnknownTopicOrPartition):
        gateway.run(client.retry(lambda: client.topic(name)))
    assert sqs.create_queue(QueueName=name)["QueueUrl"] == queue  # at once, and empty
    assert receive(sqs, queue, wait_s=0) == []


def test_a_queue_on_a_topic_that_was_there_begins_with_its_first_message(
    sqs: Any, gateway: RunningGateway, name: str
) -> None:
    client = gateway.gateway.client
    gateway.run(topics.create(client, name, partitions=2))
    gateway.run(gateway.gateway.producer.send(name, b"before"))
    queue = sqs.create_queue(QueueName=name)["QueueUrl"]
    assert receive(sqs, queue)[0]["Body"] == "before"
    sqs.delete_queue(QueueUrl=queue)
    assert len(gateway.run(client.topic(name)).partitions) == 2  # DeleteQueue left the topic alone


def test_a_topic_that_another_subscription_reads_outlives_its_queue(
    sqs: Any, gateway: RunningGateway, queue: str, name: str
) -> None:
    gateway.run(gateway.gateway.directory.create(f"{name}-audit", [name], {}))
    sqs.delete_queue(QueueUrl=queue)
    assert gateway.run(gateway.gateway.client.topic(name)).name == name


def test_any_subscription_is_a_queue(sqs: Any, gateway: RunningGateway, name: str) -> None:
    """`audit` over `orders` and `payments` can be read with boto3, though not written to."""
    both = [f"{name}-orders", f"{name}-payments"]
    for topic in both:
        gateway.run(topics.create(gateway.gateway.client, topic))
    gateway.run(gateway.gateway.directory.create(f"{name}.audit", both, {}))
    queue = sqs.get_queue_url(QueueName=f"{name}.audit")["QueueUrl"]
    for topic in both:
        gateway.run(gateway.gateway.producer.send(topic, topic.encode()))
    messages = receive_all(sqs, queue, 2)
    assert {message["Body"] for message in messages} == set(both)
    for message in messages:
        delete(sqs, queue, message)
    with pytest.raises(sqs.exceptions.UnsupportedOperation) as error:
        sqs.send_message(QueueUrl=queue, MessageBody="where to?")
    assert code_of(error) == "AWS.SimpleQueueService.UnsupportedOperation"
    assert queue in sqs.list_queues(QueueNamePrefix=name)["QueueUrls"]


def test_tags_come_and_go(sqs: Any, name: str) -> None:
    queue = sqs.create_queue(QueueName=name, tags={"team": "mail"})["QueueUrl"]
    sqs.tag_queue(QueueUrl=queue, Tags={"env": "test", "team": "post"})
    assert sqs.list_queue_tags(QueueUrl=queue)["Tags"] == {"team": "post", "env": "test"}
    sqs.untag_queue(QueueUrl=queue, TagKeys=["team", "unknown"])
    assert sqs.list_queue_tags(QueueUrl=queue)["Tags"] == {"env": "test"}
    with pytest.raises(sqs.exceptions.ClientError) as error:
        sqs.tag_queue(QueueUrl=queue, Tags={f"k{number}": "v" for number in range(60)})
    assert code_of(error) == "OverLimit"


def test_permissions_are_statements_of_the_policy(sqs: Any, queue: str) -> None:
    sqs.add_permission(
        QueueUrl=queue,
        Label="send",
        AWSAccountIds=["123456789012"],
        Actions=["SendMessage", "ReceiveMessage"],
    )
    policy = json.loads(attributes_of(sqs, queue)["Policy"])
    assert policy["Statement"] == [
        {
            "Sid": "send",
            "Effect": "Allow",
            "Principal": {"AWS": "arn:aws:iam::123456789012:root"},
            "Action": ["SQS:SendMessage", "SQS:ReceiveMessage"],
            "Resource": arn_of(sqs, queue),
        }
    ]
    for wrong in (
        {"Label": "send", "AWSAccountIds": ["123456789012"], "Actions": ["*"]},
        {"Label": "other", "AWSAccountIds": ["nobody"], "Actions": ["*"]},
        {"Label": "other", "AWSAccountIds": ["123456789012"], "Actions": ["Fly"]},
    ):
        with pytest.raises(ClientError) as error:
            sqs.add_permission(QueueUrl=queue, **wrong)
        assert code_of(error) == "InvalidParameterValue"
    sqs.remove_permission(QueueUrl=queue, Label="send")
    assert "Policy" not in attributes_of(sqs, queue)
    with pytest.raises(ClientError) as error:
        sqs.remove_permission(QueueUrl=queue, Label="send")
    assert code_of(error) == "InvalidParameterValue"


def test_a_purge_takes_everything_and_only_once_a_minute(sqs: Any, queue: str) -> None:
    for number in range(5):
        sqs.send_message(QueueUrl=queue, MessageBody=str(number), DelaySeconds=number and 60)
    (held,) = receive(sqs, queue)
    sqs.purge_queue(QueueUrl=queue)
    assert attributes_of(sqs, queue)["ApproximateNumberOfMessages"] == "0"
    sqs.change_message_visibility_batch(
        QueueUrl=queue,
        Entries=[{"Id": "1", "ReceiptHandle": held["ReceiptHandle"], "VisibilityTimeout": 0}],
    )
    assert receive(sqs, queue, 10, wait_s=0) == []
    with pytest.raises(sqs.exceptions.PurgeQueueInProgress) as error:
        sqs.purge_queue(QueueUrl=queue)
    assert code_of(error) == "AWS.SimpleQueueService.PurgeQueueInProgress"
    sqs.send_message(QueueUrl=queue, MessageBody="after")
    assert receive(sqs, queue)[0]["Body"] == "after"


def test_a_queue_says_that_it_is_encrypted_only_where_the_operator_has_said_so(
    sqs: Any, queue: str, name: str, start_gateway: StartGateway
) -> None:
    told = connect(start_gateway([dialect.routes], encrypted_at_rest=True).url)
    assert attributes_of(sqs, queue)["SqsManagedSseEnabled"] == "false"
    assert attributes_of(told, queue)["SqsManagedSseEnabled"] == "true"
    assert told.create_queue(QueueName=name, Attributes={"SqsManagedSseEnabled": "true"})
    told.set_queue_attributes(QueueUrl=queue, Attributes={"KmsMasterKeyId": "key"})
    assert attributes_of(told, queue)["SqsManagedSseEnabled"] == "false", "the key is what encrypts it"
    told.set_queue_attributes(
        QueueUrl=queue, Attributes={"KmsMasterKeyId": "", "SqsManagedSseEnabled": "false"}
    )
    assert attributes_of(told, queue)["SqsManagedSseEnabled"] == "false", "as it was set"

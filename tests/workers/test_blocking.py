"""The client for code without an event loop, and who may log in."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from pathlib import Path

import pytest

import postroad
from postroad.errors import SaslAuthenticationFailed
from postroad.testing import Node
from tests.secure_node import SecureNode


def test_everything_works_without_a_loop(postroad_session: Node, name: str) -> None:
    client = postroad.SyncClient(postroad_session.bootstrap)
    with client:
        client.publish(name, {"n": 0}, key="k", headers={"h": "1"})
        client.publish_many(name, [{"n": number} for number in range(1, 5)])
        with client.subscribe(name, group=f"{name}-readers", of=dict[str, int]) as records:
            assert [next(records).value["n"] for _ in range(5)] == [0, 1, 2, 3, 4]
        with client.receive(name, of=dict[str, int]) as messages:
            for message in messages:
                with message:
                    if message.value["n"] == 4 and message.attempt == 1:
                        raise postroad.Retry("later")
                if message.value["n"] == 4 and message.attempt == 2:
                    break
            assert messages.next(0.05) is None
    client.publish(name, "closed, and opened again")
    client.close()


def test_any_thread_may_publish(postroad_session: Node, name: str) -> None:
    with postroad.SyncClient(postroad_session.bootstrap) as client:
        threads = [threading.Thread(target=client.publish, args=(name, number)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        with client.subscribe(name, group=name, of=int) as records:
            assert sorted(next(records).value for _ in range(20)) == list(range(20))


def publish_in_child(client: postroad.SyncClient, topic: str) -> None:
    client.publish(topic, "child")


def test_process_that_was_forked_has_a_connection_of_its_own(postroad_session: Node, name: str) -> None:
    with postroad.SyncClient(postroad_session.bootstrap) as client:
        client.publish(name, "parent")
        child = multiprocessing.get_context("fork").Process(target=publish_in_child, args=(client, name))
        child.start()
        child.join(60)
        assert child.exitcode == 0
        client.publish(name, "parent again")
        with client.subscribe(name, group=name, of=str) as records:
            found = sorted(next(records).value for _ in range(3))
    assert found == ["child", "parent", "parent again"]


def test_call_from_its_own_loop_is_refused(postroad_session: Node) -> None:
    with postroad.SyncClient(postroad_session.bootstrap) as client:

        class Nested(postroad.Middleware):
            async def publish(self, outgoing: postroad.Outgoing, call_next: object) -> None:
                client.publish("other", b"")

        nested = postroad.SyncClient.of(postroad.Client(postroad_session.bootstrap, middleware=[Nested()]))
        assert nested is not client
        nested.close()
        with pytest.raises(RuntimeError, match="would wait for itself"):
            client.thread().run(_call(client))


async def _call(client: postroad.SyncClient) -> None:
    client.publish("topic", b"")


def test_secured_node_lets_in_who_has_a_profile_or_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = SecureNode(tmp_path)
    node.start()
    try:
        with postroad.SyncClient(profile=node.profile) as client:
            client.publish("jobs", "by a profile")
        monkeypatch.setenv("POSTROAD_PROFILE", str(node.profile))
        with postroad.SyncClient() as client:
            client.publish("jobs", "by the environment")
        monkeypatch.delenv("POSTROAD_PROFILE")
        admin, address = node.admin, f"tls://{node.bootstrap}?ca={node.ca}"
        with postroad.SyncClient(address, user=admin["user"], password=admin["password"]) as client:
            client.publish("jobs", "by a password")
            with client.receive("all", topic="jobs", of=str) as messages:
                found = []
                for message in messages:
                    found.append(message.value)
                    message.accept()
                    if len(found) == 3:
                        break
        assert sorted(found) == ["by a password", "by a profile", "by the environment"]
        with pytest.raises(SaslAuthenticationFailed):
            postroad.SyncClient(address, user=admin["user"], password="wrong").publish("jobs", b"")
    finally:
        node.stop()
        node.release_ports()


async def test_app_is_a_client_of_its_own_for_other_threads(postroad_session: Node, name: str) -> None:
    app = postroad.App(postroad_session.bootstrap)
    async with app:
        await app.publish(name, "from the loop")
        client = postroad.SyncClient.of(app)
        await asyncio.to_thread(client.publish, name, "from a thread")
        async with app.subscribe(name, group=name, of=str) as records:
            found = [(await anext(records)).value for _ in range(2)]
        await asyncio.to_thread(client.close)
    assert found == ["from the loop", "from a thread"]

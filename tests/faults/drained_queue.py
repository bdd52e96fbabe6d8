"""What workers have left of a queue when the faults are over, and what became of what they rejected."""

from __future__ import annotations

from confluent_kafka import Message

from tests.clients.confluent import producer, send_all
from tests.clients.share import answer, dead_letters, member, poll
from tests.clients.wait import until

from .crew import GROUP, Place, Register, fate_of, is_hopeless
from .load import PARTITIONS, TOPIC, Load, Reachable

END = b"the end 1"


def everything_is_settled(register: Register, load: Load) -> bool:
    """As far as the workers know."""
    return {
        Place(partition, offset) for (partition, _), offset in load.acknowledged.items()
    } <= register.settled()


def drain(running: Reachable, expected: set[Place]) -> tuple[list[Message], set[Place]]:
    """What the workers have left, answered too, and what the dead letters are of.

    It ends when a message of its own came from each partition and the expected letters are written. One whose
    delivery got lost on its way comes when its lock ends.
    """
    through = producer(running.bootstrap)
    send_all(through, TOPIC, ({"value": END, "partition": partition} for partition in range(PARTITIONS)))
    seen: list[Message] = []
    buried: set[Place] = set()

    def finished() -> bool:
        messages = poll(source)
        for message in messages:
            source.acknowledge(message, fate_of(message))
        if messages:
            answer(source, [])
        seen.extend(messages)
        if sum(message.value() == END for message in seen) < PARTITIONS:
            return False
        buried.update(origin(letter) for letter in dead_letters(running.bootstrap, GROUP, 1))
        return buried >= expected

    with member(running.bootstrap, GROUP, TOPIC) as source:
        until(finished, "nothing is left, and all dead letters are written", 120)
    return [message for message in seen if message.value() != END], buried


def hopeless(load: Load) -> set[Place]:
    return {
        Place(partition, offset)
        for (partition, number), offset in load.acknowledged.items()
        if is_hopeless(b"%d" % number)
    }


def origin(letter: Message) -> Place:
    notes = dict(letter.headers())
    return Place(int(notes["postroad-dead-partition"]), int(notes["postroad-dead-offset"]))

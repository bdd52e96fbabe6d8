"""Access rules come along with what is mirrored, and nothing else gets any."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroad.client import Client, subscriptions
from postroad.mirrors.access_rules import AccessRules, CarriedRules
from postroad.mirrors.errors import MirrorError
from postroad.mirrors.notes import Notes
from postroad.mirrors.positions import Wanted
from postroad.security.resources import PatternType
from postroad.security.rules import Acl
from postroad.testing import Node
from tests.broker.secured import Secured, secured_node

from .secured import READ, WRITE, connected, create, denial, give, mirror_once, rule, rules_about, take


@pytest.fixture(scope="module")
def west(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_node(tmp_path_factory.mktemp("west")) as running:
        yield running


@pytest.fixture(scope="module")
def east(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_node(tmp_path_factory.mktemp("east")) as running:
        yield running


async def test_rules_about_what_is_mirrored_come_along_and_no_others(
    west: Secured, east: Secured, topic: str
) -> None:
    await create(west, [topic, f"{topic}-secret"])
    await give(
        west,
        rule(f"topic {topic}", WRITE),
        denial(f"topic {topic}*", READ, "User:bob"),
        rule(f"topic {topic}-secret", READ),
        rule(f"group g-{topic}*", READ),
        rule(f"group h-{topic}", READ),
        rule("topic *", READ, f"User:{topic}"),
    )
    done = await mirror_once(west, east, topic, groups=Wanted((), f"[gh]-{topic}"))
    assert await rules_about(east, topic) == [
        f"ALLOW User:shop Read on group h-{topic}",
        f"ALLOW User:shop Write on topic {topic}",
        f"ALLOW User:{topic} Read on topic {topic}",
        f"DENY User:bob Read on topic {topic}",
    ]
    assert not [each for each in await rules_about(east, "*") if topic in each]
    assert done.carriage.rules.added == 4
    await take(west, rule("topic *", READ, f"User:{topic}"))  # it would be about the other tests' topics, too


async def test_a_group_that_is_there_gets_what_a_pattern_says_of_it(
    west: Secured, east: Secured, topic: str
) -> None:
    await create(west, [topic])
    await give(west, rule(f"group s-{topic}*", READ), rule(f"topic {topic}", READ))
    async with connected(west) as client:
        held = {"postroad.topics": topic}
        await subscriptions.alter_config(client, f"s-{topic}-1", held)
    await mirror_once(west, east, topic, subscriptions=Wanted((), f"s-{topic}.*"))
    assert f"ALLOW User:shop Read on group s-{topic}-1" in await rules_about(east, topic)


async def test_copies_under_another_name_have_the_rules_of_their_originals(
    west: Secured, east: Secured, topic: str
) -> None:
    await create(west, [topic])
    await give(west, rule(f"topic {topic}", READ), rule(f"group {topic}", READ))
    await mirror_once(west, east, topic, prefix="west.", groups=Wanted((topic,)))
    assert await rules_about(east, topic) == [
        f"ALLOW User:shop Read on group {topic}",
        f"ALLOW User:shop Read on topic west.{topic}",
    ]


async def test_a_rule_that_is_removed_at_the_source_goes_at_the_target_and_its_own_ones_stay(
    west: Secured, east: Secured, topic: str
) -> None:
    brought, common, own = (rule(f"topic {topic}", READ, f"User:{name}") for name in ("a", "b", "c"))
    await create(west, [topic])
    await give(west, brought, common)
    await give(east, common, own)
    before = await mirror_once(west, east, topic)
    await take(west, brought, common)
    done = await mirror_once(west, east, topic)
    assert await rules_about(east, topic) == [str(common), str(own)]
    assert done.carriage.rules == CarriedRules(removed=1, brought=before.carriage.rules.brought - 1)


async def test_a_rule_of_a_topic_that_is_no_longer_mirrored_is_taken_back_and_none_is_added(
    west: Secured, east: Secured, topic: str
) -> None:
    await create(west, [topic, f"{topic}-2"])
    old, new = rule(f"topic {topic}", READ), rule(f"topic {topic}", WRITE)
    await give(west, old)
    await mirror_once(west, east, topic)
    await give(west, new)
    await mirror_once(west, east, f"{topic}-2")
    assert await rules_about(east, topic) == [str(old)]
    await take(west, old)
    await mirror_once(west, east, f"{topic}-2")
    assert await rules_about(east, topic) == []


async def test_a_rule_that_is_removed_at_the_target_by_hand_does_not_come_back(
    west: Secured, east: Secured, topic: str
) -> None:
    await create(west, [topic])
    unwanted = rule(f"topic {topic}", READ)
    await give(west, unwanted)
    await mirror_once(west, east, topic)
    await take(east, unwanted)
    await mirror_once(west, east, topic)
    assert await rules_about(east, topic) == []


async def test_only_rules_of_chosen_users_and_denials_for_everybody(
    west: Secured, east: Secured, topic: str
) -> None:
    await create(west, [topic])
    await give(
        west,
        rule(f"topic {topic}", READ, "User:shop"),
        rule(f"topic {topic}", READ, "User:bob"),
        rule(f"topic {topic}", READ, "User:*"),
        denial(f"topic {topic}", WRITE, "User:*"),
        denial(f"topic {topic}", WRITE, "User:bob"),
    )
    await mirror_once(west, east, topic, rules_of=("shop",))
    assert await rules_about(east, topic) == [
        f"ALLOW User:shop Read on topic {topic}",
        f"DENY User:* Write on topic {topic}",
    ]


async def test_a_run_that_was_killed_between_its_note_and_its_rule_is_finished(
    west: Secured, east: Secured, topic: str
) -> None:
    """Before the rule was added, and after it: the next run knows that it is a mirror's."""
    await create(west, [f"{topic}-1", f"{topic}-2"])
    late, done = rule(f"topic {topic}-1", READ), rule(f"topic {topic}-2", READ)
    await give(west, late, done)
    async with connected(west) as here, connected(east) as there:
        notes = Notes(there, (await here.cluster([])).id or "", "")
        await notes.prepare()
        for each in (late, done):
            brought = {"seen": [], "brought": [list(each.rule)]}
            await notes.put({f"rules topic {each.resource.name}": brought})
    await give(east, done)
    await mirror_once(west, east, f"{topic}-1", f"{topic}-2")
    assert await rules_about(east, topic) == [str(late), str(done)]
    await take(west, late, done)
    await mirror_once(west, east, f"{topic}-1", f"{topic}-2")
    assert await rules_about(east, topic) == []


async def test_a_right_that_is_taken_back_does_not_return_from_the_other_side(
    west: Secured, east: Secured, topic: str
) -> None:
    await create(west, [topic])
    await give(west, rule(f"topic {topic}*", READ))
    await mirror_once(west, east, topic)
    await mirror_once(east, west, topic)
    assert await rules_about(west, topic) == [f"ALLOW User:shop Read on topic {topic}*"]
    await take(west, rule(f"topic {topic}*", READ))
    await mirror_once(east, west, topic)
    await mirror_once(west, east, topic)
    await mirror_once(east, west, topic)
    assert await rules_about(west, topic) == await rules_about(east, topic) == []


@pytest.mark.parametrize("seed", range(3))
async def test_mirrors_in_both_directions_come_to_rest_with_the_same_rules(
    west: Secured, east: Secured, topic: str, seed: int
) -> None:
    """Whatever is given and taken at both sides: names that nobody mirrors keep their rules, a right that
    nobody has given anywhere is nowhere, and in the end nothing changes any more."""
    chance = random.Random(seed)
    mirrored = [f"{topic}-1", f"{topic}-2"]
    names = [*mirrored, f"{topic}-other", f"{topic}*"]
    given: dict[str, dict[Acl, None]] = {"west": {}, "east": {}}
    nodes = {"west": west, "east": east}
    async with connected(west) as here, connected(east) as there:
        ids = (await here.cluster([])).id or "", (await there.cluster([])).id or ""
        carriers = {
            "there": await carrier(here, there, ids),
            "back": await carrier(there, here, (ids[1], ids[0])),
        }
        for _ in range(40):
            side = chance.choice(["west", "east"])
            match chance.randrange(4):
                case 0:
                    each = make(chance, names)
                    await give(nodes[side], each)
                    given[side][each] = None
                case 1 if given[side]:
                    each = chance.choice([*given[side]])
                    del given[side][each]
                    if str(each) in await rules_about(nodes[side], topic):
                        await take(nodes[side], each)
                case _:
                    await carriers[chance.choice(["there", "back"])].carry(mirrored, [], [])
        for _ in range(3):
            for mirror in carriers.values():
                await mirror.carry(mirrored, [], [])
        before = await rules_about(west, topic), await rules_about(east, topic)
        for mirror in carriers.values():
            await mirror.carry(mirrored, [], [])
    assert (await rules_about(west, topic), await rules_about(east, topic)) == before
    spoken = [each for those in given.values() for each in those]
    rights = {
        str(rule_about(name, each)) for each in spoken for name in mirrored if each.resource.covers(2, name)
    }
    for side, found in zip(given, before, strict=True):
        elsewhere = {str(each) for each in given[side] if each.resource.name not in mirrored}
        assert elsewhere <= set(found) <= elsewhere | rights


def rule_about(name: str, of: Acl) -> Acl:
    return of._replace(resource=of.resource._replace(pattern=PatternType.LITERAL, name=name))


def make(chance: random.Random, names: list[str]) -> Acl:
    kind = chance.choice([rule, denial])
    return kind(f"topic {chance.choice(names)}", chance.choice([READ, WRITE]), f"User:{chance.choice('ab')}")


async def carrier(here: Client, there: Client, ids: tuple[str, str]) -> AccessRules:
    notes = Notes(there, ids[0], "")
    await notes.prepare()
    return AccessRules(here, there, ids, notes, "", ())


# --- clusters that have no rules -------------------------------------------------------------------


async def test_a_side_without_rules_is_named(west: Secured, postroad: Node, topic: str) -> None:
    await create(west, [topic])
    async with connected(west) as secured, Client(postroad.bootstrap) as other:
        for which, clients in {"target": (secured, other), "source": (other, secured)}.items():
            rules = await carrier(*clients, ("a", "b"))
            with pytest.raises(MirrorError, match=f"the {which} has no access rules: set security"):
                await rules.check()


async def test_a_target_where_all_is_open_that_has_no_rules_is_refused(
    west: Secured, tmp_path: Path, topic: str
) -> None:
    await create(west, [topic])
    with secured_node(tmp_path, security_open_without_rules="true") as target:
        with pytest.raises(MirrorError, match="lets everybody do everything"):
            await mirror_once(west, target, topic)
        done = await mirror_once(west, target, topic, rules=False)
        assert done.carriage.rules == CarriedRules()

"""How each kind of fault strikes, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from postroad.log.index import ENTRY_BYTES
from postroad.log.segment import INDEX_SUFFIX
from simulator.faults import Fault, Flip
from simulator.partition_files import is_cold

if TYPE_CHECKING:
    from simulator.scenario import Scenario

SLOWNESS: Final = 50.0
ERROR_RATE: Final = 0.02
SYNC_ERROR_RATE: Final = 0.3
ERRORS: Final = ("write", "sync", "truncate", "create", "rename", "sync_directory")
INDEXES_MAX: Final = 40  # that are damaged at a time
SKEW_S: Final = 3000.0  # how wrong a wall clock may get; producers' timestamps may be an hour ahead
OPERATIONS_MAX: Final = 400  # a crash comes within this many disk operations, mostly within a few
PAIR_S: Final = 4.0  # between the two
LATENCY_S: Final = 0.5  # the longest on a slow network
RESETS: Final = 0.05  # of all packets
ROOM_BYTES: Final = 2048  # what a disk that fills up has left, at most

Strike = Callable[["Scenario", Fault], None]


def strike(scenario: Scenario, fault: Fault) -> None:
    """Begin the fault now; what lasts ends by itself."""
    scenario.world.note("fault", fault.kind, f"{fault.node} {fault.lasts:g} {fault.amount:g}")
    scenario.world.sometimes(f"fault {fault.kind}")
    STRIKES[fault.kind](scenario, fault)


def _kill(scenario: Scenario, fault: Fault) -> None:
    scenario.services[fault.node].kill()


def _cut_power(scenario: Scenario, fault: Fault) -> None:
    scenario.services[fault.node].cut_power()


def _sag(scenario: Scenario, fault: Fault) -> None:
    """At most other moments hardly anything waits for a sync."""
    drive = scenario.services[fault.node].machine.drive
    drive.stall_rate = 1.0
    scenario.world.after(fault.lasts, scenario.services[fault.node].cut_power)
    scenario.world.after(fault.lasts, scenario.mend_disk, fault.node)


def _stop(scenario: Scenario, fault: Fault) -> None:
    scenario.services[fault.node].stop()


def _crash(scenario: Scenario, fault: Fault) -> None:
    """Few operations are likelier than many, for a kill as for a power cut."""
    operations = int(OPERATIONS_MAX ** (fault.amount * 2 % 1.0))
    scenario.services[fault.node].crash_in(operations, power=fault.amount < 0.5)


def _pause(scenario: Scenario, fault: Fault) -> None:
    process = scenario.services[fault.node].machine.process
    if process is not None and process.alive:
        process.pause(fault.lasts)


def _cut(scenario: Scenario, fault: Fault) -> None:
    """Between the node and one peer or all of them, in one direction or in both."""
    random = scenario.world.random("cuts")
    host = scenario.services[fault.node].machine.host
    peers = [process.host for process in scenario.clients]
    peers += [service.machine.host for service in scenario.services if service.machine.host != host]
    if fault.amount < 0.5:
        peers = [random.choice(peers)]
    one_way, outward = random.random() < 0.3, random.random() < 0.5
    for peer in peers:
        scenario.network.cut(*((host, peer) if outward else (peer, host)), one_way=one_way)
    scenario.world.after(fault.lasts, scenario.network.heal)


def _isolate(scenario: Scenario, fault: Fault) -> None:
    """From all other nodes; the store and clients still reach it."""
    random = scenario.world.random("cuts")
    host = scenario.services[fault.node].machine.host
    one_way, outward = random.random() < 0.3, random.random() < 0.5
    for other in scenario.services:
        if other.machine.host != host:
            pair = (host, other.machine.host) if outward else (other.machine.host, host)
            scenario.network.cut(*pair, one_way=one_way)
    scenario.world.after(fault.lasts, scenario.network.heal, host)


def _leave_alone(scenario: Scenario, fault: Fault) -> None:
    """With its clients: it may go on as if it led, and must not harm anybody."""
    host = scenario.services[fault.node].machine.host
    for other in scenario.services:
        if other.machine.host != host:
            scenario.network.cut(host, other.machine.host)
    scenario.store.cut(host)
    scenario.world.after(fault.lasts, scenario.network.heal, host)
    scenario.world.after(fault.lasts, scenario.store.heal, host)


def _kill_pair(scenario: Scenario, fault: Fault) -> None:
    """Within the time in which the first one is found dead and leaves the in-sync replicas."""
    services = scenario.services
    services[fault.node].kill()
    second = services[(fault.node + 1) % len(services)]
    scenario.world.after(fault.amount * PAIR_S, second.kill)


def _falter(scenario: Scenario, fault: Fault) -> None:
    """The first one is behind when the second one dies, and nobody knows how much is committed."""
    services = scenario.services
    _slow_network(scenario, fault)
    services[fault.node].kill()
    second = services[(fault.node + 1) % len(services)]
    scenario.world.after(fault.lasts * (fault.amount * 97 % 1.0), second.kill)


def _cut_all_power(scenario: Scenario, _: Fault) -> None:
    for service in scenario.services:
        service.cut_power()


def _slow_network(scenario: Scenario, fault: Fault) -> None:
    conditions = scenario.network.conditions
    conditions.latency_s = (0.0, fault.amount * LATENCY_S)
    scenario.world.after(fault.lasts, scenario.calm_network)


def _reset(scenario: Scenario, fault: Fault) -> None:
    """For a while requests and answers are lost with their connections, each at its own moment."""
    host = scenario.services[fault.node].machine.host
    for process in scenario.clients:
        scenario.network.reset_between(host, process.host)
    scenario.network.conditions.resets = RESETS
    scenario.world.after(fault.lasts, scenario.end_resets)


def _slow(scenario: Scenario, fault: Fault) -> None:
    drive = scenario.services[fault.node].machine.drive
    drive.slowness, drive.stall_rate = SLOWNESS, fault.amount / 10
    scenario.world.after(fault.lasts, scenario.mend_disk, fault.node)


def _fail(scenario: Scenario, fault: Fault) -> None:
    drive = scenario.services[fault.node].machine.drive
    if fault.amount < 0.5:
        drive.error_rates = dict.fromkeys(ERRORS, ERROR_RATE)
    else:
        drive.error_rates = {"sync": SYNC_ERROR_RATE}
    scenario.world.after(fault.lasts, scenario.mend_disk, fault.node)


def _fill(scenario: Scenario, fault: Fault) -> None:
    drive = scenario.services[fault.node].machine.drive
    used = sum(len(file.content) for _, file in drive.files())
    drive.capacity = used + int(fault.amount * ROOM_BYTES)
    scenario.world.after(fault.lasts, scenario.mend_disk, fault.node)


def _take_store(scenario: Scenario, fault: Fault) -> None:
    scenario.store.begin_outage()
    scenario.world.after(fault.lasts, scenario.store.end_outage)


def _take_store_from(scenario: Scenario, fault: Fault) -> None:
    host = scenario.services[fault.node].machine.host
    scenario.store.cut(host, answers=fault.amount < 0.7, requests=fault.amount > 0.3)
    scenario.world.after(fault.lasts, scenario.store.heal, host)


def _disturb_store(scenario: Scenario, fault: Fault) -> None:
    faults = scenario.store.faults
    faults.request_lost = faults.request_late = faults.answer_lost = fault.amount / 5
    faults.watch_lag_s = fault.amount * 2
    scenario.world.after(fault.lasts, scenario.calm_store)


def _compact_store(scenario: Scenario, fault: Fault) -> None:
    scenario.store.compact(keep=int(fault.amount * 3))


def _jump(scenario: Scenario, fault: Fault) -> None:
    scenario.services[fault.node].machine.set_clock((fault.amount * 2 - 1) * SKEW_S)


def _flip(scenario: Scenario, fault: Fault) -> None:
    """While nobody runs: what a process has written or verified itself it need not look at again (ADR 7)."""
    service = scenario.services[fault.node]
    directories = scenario.fragile_directories(fault.node)
    if not directories:
        return
    service.kill()
    drive = service.machine.drive
    drive.drop_caches(lambda path: path.startswith(directories))
    found = drive.flip_bit(lambda path: path.startswith(directories) and is_cold(path, drive))
    if found is not None:
        scenario.flips.append(Flip(scenario.world.now, *found))


def _damage_indexes(scenario: Scenario, fault: Fault) -> None:
    """While nobody runs. Indexes are hints: of any topic they may be damaged in any way."""
    service = scenario.services[fault.node]
    service.kill()
    random, drive = scenario.world.random("indexes"), service.machine.drive
    found = [(path, file) for path, file in drive.files() if path.endswith(INDEX_SUFFIX) and file.content]
    for path, file in random.sample(found, min(len(found), 1 + int(fault.amount * INDEXES_MAX))):
        content = bytearray(file.content)
        how = random.choice(("flipped", "flipped", "cut", "emptied"))
        if how == "flipped":
            for _ in range(1 + len(content) // ENTRY_BYTES):
                content[random.randrange(len(content))] ^= 1 << random.randrange(8)
        else:
            del content[0 if how == "emptied" else random.randrange(len(content)) :]
        file.overwrite(bytes(content))
        scenario.world.note(drive.host, f"index {how}", path)


STRIKES: Final[dict[str, Strike]] = {
    "kill": _kill,
    "power": _cut_power,
    "sag": _sag,
    "stop": _stop,
    "crash": _crash,
    "pause": _pause,
    "cut": _cut,
    "isolate": _isolate,
    "alone": _leave_alone,
    "pair": _kill_pair,
    "falter": _falter,
    "blackout": _cut_all_power,
    "network": _slow_network,
    "reset": _reset,
    "slow": _slow,
    "fail": _fail,
    "full": _fill,
    "store": _take_store,
    "away": _take_store_from,
    "lossy": _disturb_store,
    "compact": _compact_store,
    "clock": _jump,
    "flip": _flip,
    "index": _damage_indexes,
}

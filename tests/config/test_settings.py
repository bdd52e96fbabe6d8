"""Settings: defaults, where they come from, what is refused, how they are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from postroad.cluster.config_definition import ConfigSource
from postroad.cluster.topic_config import DEFINITIONS, resolve
from postroad.config import Settings, describe, load, reference, to_toml
from postroad.config.settings import Kafka, all_settings
from postroad.errors import ConfigurationError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "postroad.toml"


# --- defaults ------------------------------------------------------------------------------------


def test_the_defaults_serve_this_machine_only() -> None:
    settings = Settings()
    assert (settings.kafka.host, settings.kafka.port) == ("127.0.0.1", 9092)
    assert settings.kafka.loopback
    assert settings.data.dir == Path("postroad-data")
    assert settings.durability.flush == "sync"


def test_topic_defaults_are_those_of_the_registry() -> None:
    for name, value in Settings().topic_defaults.items():
        assert value == DEFINITIONS[name].default
    assert resolve({}, Settings().topic_defaults) == resolve({}, {})


def test_the_nodes_settings_give_topics_their_defaults() -> None:
    settings = Settings.of(
        topics_retention_ms="1h", topics_cleanup_policy="compact,delete", durability_flush="os"
    )
    topic = resolve({}, settings.topic_defaults)
    assert (topic.retention_ms, topic.cleanup_compact, topic.flush) == (3_600_000, True, "os")


def test_every_setting_is_explained_and_its_default_valid() -> None:
    for setting in all_settings():
        assert setting.read(setting.default) == setting.default
        assert setting.help.endswith(".")
        assert "_" not in setting.section


# --- made by programs ----------------------------------------------------------------------------


def test_tests_say_only_what_differs() -> None:
    settings = Settings.of(kafka_port=0, limits_idle_ms="5s", data_dir="/tmp/x")
    assert (settings.kafka.port, settings.limits.idle_ms, settings.data.dir) == (0, 5000, Path("/tmp/x"))
    assert settings.groups == Settings().groups
    assert Settings(kafka=Kafka(port=0)).kafka.port == 0


def test_a_section_refuses_what_is_wrong() -> None:
    with pytest.raises(ConfigurationError, match=r"kafka\.port = 70000: it must be a whole number"):
        Kafka(port=70000)
    with pytest.raises(ConfigurationError, match=r"no setting 'kafka\.prot'; did you mean 'kafka\.port'"):
        Settings.of(kafka_prot=1)


# --- where they come from ------------------------------------------------------------------------


def test_a_later_place_overrides_an_earlier_one(file: Path) -> None:
    file.write_text('[kafka]\nport = 1\n[limits]\nidle_ms = "1m"\n[groups]\nmembers_max = 7\n')
    environment = {"POSTROAD_KAFKA_PORT": "2", "POSTROAD_LIMITS_IDLE_MS": "2m", "HOME": "/root"}
    loaded = load(file, environment, {"kafka.port": "3"})
    settings = loaded.settings
    assert (settings.kafka.port, settings.limits.idle_ms, settings.groups.members_max) == (3, 120_000, 7)
    assert loaded.origins["kafka.port"] == "command line"
    assert loaded.origins["limits.idle_ms"] == "POSTROAD_LIMITS_IDLE_MS"
    assert loaded.origins["groups.members_max"] == str(file)
    assert loaded.origins["kafka.host"] == "default"


def test_the_environment_may_name_the_file(file: Path) -> None:
    file.write_text("[node]\nid = 5\n")
    assert load(environment={"POSTROAD_CONFIG": str(file)}).settings.node.id == 5


def test_variables_that_kubernetes_sets_are_not_ours() -> None:
    environment = {
        "POSTROAD_SERVICE_HOST": "10.0.0.1",
        "POSTROAD_SERVICE_PORT": "9092",
        "POSTROAD_SERVICE_PORT_KAFKA": "9092",
        "POSTROAD_PORT": "tcp://10.0.0.1:9092",
        "POSTROAD_PORT_9092_TCP_ADDR": "10.0.0.1",
        "POSTROAD_HEADLESS_SERVICE_HOST": "10.0.0.2",
    }
    assert load(environment=environment).settings == Settings()


def test_a_variable_that_kubernetes_sets_over_ours_is_explained() -> None:
    with pytest.raises(ConfigurationError, match="enableServiceLinks"):
        load(environment={"POSTROAD_KAFKA_PORT": "tcp://10.0.0.1:9092"})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("[kafkaa]\n", r"no section \[kafkaa\]; did you mean 'kafka'"),
        ("[kafka]\nprot = 1\n", r"no setting 'kafka\.prot'; did you mean 'kafka\.port'"),
        ("kafka = 5\n", r"write \[kafka\] above"),
        ("[kafka\n", "not valid TOML"),
        ("[kafka]\nport = 'x'\n", r"kafka\.port = 'x' is not valid; it must be a whole number"),
        ("[kafka]\nport = true\n", r"kafka\.port = True is not valid"),
        ("[topics]\ncleanup_policy = 'shred'\n", "one or more of delete, compact"),
        ("[topics]\nsegment_bytes = '4GiB'\n", "up to 2147483647"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name(file: Path, content: str, text: str) -> None:
    file.write_text(content)
    with pytest.raises(ConfigurationError, match=text) as refused:
        load(file, {})
    assert str(file) in str(refused.value)


def test_a_file_that_is_missing_or_no_text_is_refused(file: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        load(file, {})
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="not valid TOML"):
        load(file, {})


def test_an_unknown_variable_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(ConfigurationError, match="'POSTROAD_KAFKA_PROT'; did you mean 'POSTROAD_KAFKA_PORT'"):
        load(environment={"POSTROAD_KAFKA_PROT": "1"})


def test_a_wrong_flag_says_that_it_was_a_flag() -> None:
    with pytest.raises(ConfigurationError, match="command line: there is no setting 'nothing'"):
        load(environment={}, flags={"nothing": "1"})


# --- what spans several settings -----------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org"])
def test_an_address_that_others_reach_needs_to_be_asked_for(host: str) -> None:
    with pytest.raises(ConfigurationError, match=r"set kafka\.insecure = true"):
        Settings.of(kafka_host=host)
    settings = Settings.of(kafka_host=host, kafka_insecure=True, kafka_advertised_host="broker")
    assert settings.kafka.host_to_advertise == "broker"
    assert not settings.kafka.loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_no_permission(host: str) -> None:
    assert Settings.of(kafka_host=host).kafka.host_to_advertise == host


def test_clients_must_be_told_an_address_that_they_can_use() -> None:
    with pytest.raises(ConfigurationError, match=r"Set kafka\.advertised_host"):
        Settings.of(kafka_host="0.0.0.0", kafka_insecure=True)


def test_timeouts_must_fit_together() -> None:
    with pytest.raises(ConfigurationError, match="session_min_ms must not be above"):
        Settings.of(groups_session_min_ms="1h")
    with pytest.raises(ConfigurationError, match="consumer_heartbeat_ms must be below"):
        Settings.of(groups_consumer_heartbeat_ms="1m")


# --- shown ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("short", ["0", "1999ms", "-1", "11m", "soon"])
def test_a_lease_that_no_store_would_keep_is_refused(short: str) -> None:
    assert Settings.of(cluster_lease_ms="2s").cluster.lease_ms == 2000
    with pytest.raises(ConfigurationError, match=r"cluster\.lease_ms.*30s.*from 2000 to 600000"):
        load(environment={}, flags={"cluster.lease_ms": short})


def test_what_is_printed_reads_back_as_the_same_settings(file: Path) -> None:
    flags = {
        "kafka.port": "1",
        "limits.idle_ms": "7m",
        "data.dir": '/tmp/a "quoted" ü',
        "topics.retention_ms": "-1",
    }
    loaded = load(environment={}, flags=flags)
    printed = to_toml(loaded)
    file.write_text(printed)
    assert load(file, {}).settings == loaded.settings
    assert "idle_ms = 420000  # 7m, from command line\n" in printed
    assert 'host = "127.0.0.1"  # default\n' in printed


def test_the_documentation_is_current() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text()
    assert written == reference(), "run: python -m postroad.config > docs/configuration.md"


def test_describe_configs_shows_the_node_in_kafkas_words() -> None:
    loaded = load(environment={}, flags={"topics.retention_ms": "1h", "groups.offsets_retention_ms": "1d"})
    entries = {entry.name: entry for entry in describe(loaded)}
    assert entries["log.retention.ms"].value == "3600000"
    assert entries["log.retention.ms"].source == ConfigSource.NODE
    assert entries["offsets.retention.minutes"].value == "1440"
    assert entries["auto.create.topics.enable"].value == "true"
    assert entries["num.partitions"].source == ConfigSource.DEFAULT
    assert entries["postroad.durability.flush"].value == "sync"
    assert all(entry.read_only for entry in entries.values())
    assert len(entries) == len(list(all_settings()))

"""`postroad config client`: what a client has to be told, ready to be pasted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from postroad.cli.command import Command
from postroad.cli.profile import current, read_password
from postroad.cli.session import address_of, bootstrap_option
from postroad.errors import ConfigurationError

if TYPE_CHECKING:
    from postroad.client.metadata import Address

MECHANISM: Final = "SCRAM-SHA-256"
REGION: Final = "us-east-1"  # boto3 wants one, whatever it is
DEFAULT_HTTP: Final = "http://127.0.0.1:8080"
JAAS: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


class ClientAccess(NamedTuple):
    """Where the cluster is, and who logs in there. Empty texts: without TLS's CA, without a login."""

    servers: str
    protocol: str
    ca: str
    user: str
    password: str
    http: str
    key_id: str
    secret: str


def _librdkafka(access: ClientAccess) -> dict[str, str]:
    return _given(
        {
            "bootstrap.servers": access.servers,
            "security.protocol": access.protocol,
            "sasl.mechanism": MECHANISM if access.user else "",
            "sasl.username": access.user,
            "sasl.password": access.password,
            "ssl.ca.location": access.ca,
        }
    )


def _java(access: ClientAccess) -> dict[str, str]:
    return _given(
        {
            "bootstrap.servers": access.servers,
            "security.protocol": access.protocol,
            "sasl.mechanism": MECHANISM if access.user else "",
            "sasl.jaas.config": _jaas(access) if access.user else "",
            "ssl.truststore.type": "PEM" if access.ca else "",
            "ssl.truststore.location": access.ca,
        }
    )


def _confluent(access: ClientAccess) -> str:
    return _python_dict("config", _librdkafka(access), "Producer(config), Consumer(config | {'group.id': …})")


def _kcat(access: ClientAccess) -> str:
    lines = [f"{name}={value}" for name, value in _librdkafka(access).items()]
    return "\n".join(["# kcat -F FILE -L", *lines])


def _java_properties(access: ClientAccess) -> str:
    lines = [f"{name}={_property(value)}" for name, value in _java(access).items()]
    return "\n".join(["# client.properties; Kafka's tools take it by --command-config", *lines])


def _spark(access: ClientAccess) -> str:
    options = {f"kafka.{name}": value for name, value in _java(access).items()}
    return _python_dict("options", options, 'spark.read.format("postroad").options(**options)')


def _kafka_python(access: ClientAccess) -> str:
    return _python_call(access, f"ssl_cafile={_text(access.ca)}", "KafkaProducer(**config)")


def _aiokafka(access: ClientAccess) -> str:
    uses_tls = access.protocol.endswith("SSL")
    printed = _python_call(
        access,
        f"ssl_context=create_ssl_context({f'cafile={_text(access.ca)}' if access.ca else ''})",
        "AIOKafkaProducer(**config)",
        always=uses_tls,
    )
    return f"from aiokafka.helpers import create_ssl_context\n\n{printed}" if uses_tls else printed


def _boto3(access: ClientAccess) -> str:
    lines = [
        *("import boto3", "", "sqs = boto3.client(", '    "sqs",'),
        f"    endpoint_url={_text(access.http)},",
        f"    region_name={_text(REGION)},",
        f"    aws_access_key_id={_text(access.key_id)},",
        f"    aws_secret_access_key={_text(access.secret)},",
        *([f"    verify={_text(access.ca)},"] if access.ca and access.http.startswith("https://") else []),
        ")",
    ]
    return "\n".join(lines)


FORMS: Final[Mapping[str, Callable[[ClientAccess], str]]] = {
    "confluent": _confluent,
    "aiokafka": _aiokafka,
    "kafka-python": _kafka_python,
    "kcat": _kcat,
    "java": _java_properties,
    "spark": _spark,
    "boto3": _boto3,
}

_FILE: Final = click.Path(path_type=Path, dir_okay=False)


@click.command(cls=Command)
@click.option("--for", "client", type=click.Choice(list(FORMS)), required=True, help="Which client.")
@click.option("--user", metavar="NAME", help="Log in as this user. [default: that of the profile]")
@click.option("--password-file", type=_FILE, metavar="FILE", help="The user's password, in the first line.")
@click.option("--access-key", "key_id", metavar="ID", help="For boto3: an access key of the user.")
@click.option("--secret-file", type=_FILE, metavar="FILE", help="For boto3: its secret, in the first line.")
@bootstrap_option
def client(
    client: str,
    user: str | None,
    password_file: Path | None,
    key_id: str | None,
    secret_file: Path | None,
    bootstrap: str,
) -> None:
    """Print settings for a client, passwords included: where the profile's cluster is, and how to log in.

    \b
    postroad --profile shop.profile config client --for confluent
    postroad --profile admin.profile config client --for java --user shop --password-file shop.password
    """
    click.echo(FORMS[client](_access(bootstrap, user, password_file, key_id, secret_file)))


def _access(
    bootstrap: str, user: str | None, password_file: Path | None, key_id: str | None, secret_file: Path | None
) -> ClientAccess:
    from postroad.client import bootstrap as bootstraps

    profile = current()
    try:
        found = bootstraps.read(address_of(bootstrap, profile))
    except ConfigurationError as error:
        raise click.BadParameter(str(error).removeprefix("bootstrap: "), param_hint="--bootstrap") from None
    if found.tls is not None and found.tls.keys() - {"ca"}:
        raise click.UsageError("an address with certificate=, key= or verify= can't be printed for a client")
    name, password = (profile.user, profile.password) if user is None else (user, "")
    if found.credentials is not None and user is None:
        name, password = found.credentials[:2]
    if password_file is not None:
        password = read_password(password_file)
    if name and not password:
        password = f"PASSWORD OF {name}"
    ca = found.tls.get("ca", "") if found.tls is not None else ""
    key_id = key_id or (f"ACCESS KEY OF {name}" if name else "any")
    secret = read_password(secret_file) if secret_file else "ITS SECRET" if name else "any"
    return ClientAccess(
        servers=",".join(map(_server, found.addresses)),
        protocol=_protocol(found.tls is not None, bool(name)),
        ca=str(Path(ca).absolute()) if ca else "",
        user=name,
        password=password,
        http=profile.http or DEFAULT_HTTP,
        key_id=key_id,
        secret=secret,
    )


def _server(address: Address) -> str:
    return f"[{address.host}]:{address.port}" if ":" in address.host else str(address)


def _protocol(is_tls: bool, logs_in: bool) -> str:
    """Empty for what every client does anyway."""
    if logs_in:
        return "SASL_SSL" if is_tls else "SASL_PLAINTEXT"
    return "SSL" if is_tls else ""


# --- how texts are written


def _given(settings: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if value}


def _text(value: str) -> str:
    """As Python and JSON both write it."""
    return json.dumps(value, ensure_ascii=False)


def _python_dict(name: str, settings: Mapping[str, str], use: str) -> str:
    lines = [f"    {_text(key)}: {_text(value)}," for key, value in settings.items()]
    return "\n".join([f"# {use}", f"{name} = {{", *lines, "}"])


def _python_call(access: ClientAccess, tls: str, use: str, *, always: bool = False) -> str:
    settings = {
        "bootstrap_servers": access.servers,
        "security_protocol": access.protocol,
        "sasl_mechanism": MECHANISM if access.user else "",
        "sasl_plain_username": access.user,
        "sasl_plain_password": access.password,
    }
    lines = [f"    {name}={_text(value)}," for name, value in _given(settings).items()]
    lines += [f"    {tls},"] if access.ca or always else []
    return "\n".join([f"# {use}", "config = dict(", *lines, ")"])


def _jaas(access: ClientAccess) -> str:
    user, password = (_quoted(text) for text in (access.user, access.password))
    return f"{JAAS} required username={user} password={password};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _property(value: str) -> str:
    """In a file of Java's properties a backslash begins an escape, and letters beyond Latin-1 are some."""
    doubled = value.replace("\\", "\\\\")
    units = doubled.encode("utf-16-be")
    pairs = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(chr(unit) if 0x20 <= unit < 0x7F else f"\\u{unit:04x}" for unit in pairs)

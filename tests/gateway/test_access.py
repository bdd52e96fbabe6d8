import pytest

from postroad.gateway.access import Keys


def test_without_keys_none_is_required() -> None:
    keys = Keys.parse("")
    assert not keys.required
    assert keys.find("anybody") is None


def test_a_key_is_found_by_its_id_and_accepted_with_its_secret() -> None:
    keys = Keys.parse("reader:one, boss:two:admin")
    assert keys.required
    found = keys.find("reader")
    assert found is not None
    assert (found.secret, found.admin) == ("one", False)
    boss = keys.check("boss", "two")
    assert boss is not None
    assert boss.admin


@pytest.mark.parametrize(
    ("key_id", "secret"), [("reader", "two"), ("reader", ""), ("nobody", "one"), ("", "")]
)
def test_a_wrong_secret_or_id_is_refused(key_id: str, secret: str) -> None:
    assert Keys.parse("reader:one,boss:two:admin").check(key_id, secret) is None


def test_a_key_does_not_show_its_secret() -> None:
    assert "one" not in repr(Keys.parse("reader:one").find("reader"))

"""Who logs in is told to another process by a file, whatever is in a password."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.client.profile import read_profile
from postroad.errors import ConfigurationError
from postroad.schedulers.access import Access

# Nothing in a password may end the string or the line.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(user=TEXTS, password=TEXTS)
def test_password_travels_in_a_file_of_its_user_that_is_gone_afterwards(user: str, password: str) -> None:
    access = Access("kafka:9092", user, password)
    with access.environment() as variables:
        path = Path(variables["POSTROAD_PROFILE"])
        assert path.stat().st_mode & 0o077 == 0
        profile = read_profile(path)
        assert (profile.user, profile.password) == (user, password)
        assert set(variables) == {"POSTROAD_PROFILE", "POSTROAD_BOOTSTRAP"}
    assert not path.exists()


def test_user_comes_before_that_of_the_profile_whose_address_and_ca_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.pem").touch()
    given_profile = tmp_path / "shop.profile"
    given_profile.write_text('bootstrap = "tls://kafka:9092"\nca = "ca.pem"\nuser = "shop"\npassword = "x"\n')
    monkeypatch.setenv("POSTROAD_PROFILE", str(given_profile))
    with Access(user="ann", password="secret").environment() as variables:
        profile = read_profile(Path(variables["POSTROAD_PROFILE"]))
    assert (profile.bootstrap, profile.user, profile.password) == ("tls://kafka:9092", "ann", "secret")
    assert profile.ca == str(tmp_path / "ca.pem")


def test_password_without_a_user_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="both user and password"):
        Access(password="secret")
    assert "secret" not in repr(Access(user="ann", password="secret"))

"""The many URLs of one repository."""

from __future__ import annotations

import pytest

from remem.hooks.identity import normalise_url


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/pallets/click.git", "github.com/pallets/click"),
        ("https://user:pa55@GitHub.com/pallets/click/", "github.com/pallets/click"),
        ("git@github.com:pallets/click.git", "github.com/pallets/click"),
        ("github.com:pallets/click", "github.com/pallets/click"),
        ("ssh://git@github.com:22/pallets/click", "github.com/pallets/click"),
        ("ssh://git@host.org:2222/a/b.git", "host.org:2222/a/b"),
        ("git://host.org/a", "host.org/a"),
        ("file:///srv/git/a.git", "/srv/git/a.git"),
        ("/srv/git/../a.git", "/srv/a.git"),
        ("../a", "/base/a"),
    ],
)
def test_urls_of_one_repository_have_one_name(url: str, name: str) -> None:
    assert normalise_url(url, "/base/repo") == name

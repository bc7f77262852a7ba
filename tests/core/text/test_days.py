from datetime import UTC, datetime

import pytest

from lamella.errors import LamellaError
from lamella.text.days import human_day, utc_iso, utc_now, zone

LATE = datetime(2026, 5, 10, 22, 30, 0, 123_999, UTC)


@pytest.mark.parametrize(
    ("tz", "day"),
    [("UTC", "2026-05-10"), ("Asia/Shanghai", "2026-05-11"), ("America/Los_Angeles", "2026-05-10")],
)
def test_the_day_is_the_users(tz: str, day: str) -> None:
    assert human_day(LATE, tz) == day


def test_the_day_follows_daylight_saving() -> None:
    # 22:30 UTC is 00:30 of the next day in Berlin in summer, 23:30 of the same day in winter.
    assert human_day(LATE, "Europe/Berlin") == "2026-05-11"
    assert human_day(LATE.replace(month=1), "Europe/Berlin") == "2026-01-10"


def test_an_empty_zone_is_the_systems() -> None:
    assert zone("") is None
    assert human_day(LATE) == LATE.astimezone().date().isoformat()


def test_utc_stamps_have_milliseconds_and_z() -> None:
    assert utc_iso(LATE) == "2026-05-10T22:30:00.123Z"
    assert utc_iso(datetime.fromisoformat("2026-05-10T22:30:00+02:00")) == "2026-05-10T20:30:00.000Z"
    assert datetime.fromisoformat(utc_iso()).tzinfo is not None
    assert utc_now().tzinfo is UTC


@pytest.mark.parametrize("name", ["Mars/Olympus", "Europe", "../etc/passwd", "/etc/passwd", "a\0b"])
def test_an_unknown_zone_is_named(name: str) -> None:
    with pytest.raises(LamellaError, match="unknown time zone"):
        human_day(LATE, name)


def test_a_moment_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        utc_iso(datetime(2026, 5, 10))

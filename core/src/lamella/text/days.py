"""Times: the day as the user sees it, and UTC stamps as the session format writes them."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, tzinfo

from lamella.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc_now() -> datetime:
    """This moment, in UTC."""
    return datetime.now(UTC)


def zone(name: str) -> tzinfo | None:
    """The zone of that name; None, which `astimezone` takes for the system's zone, when it is empty.

    Raises `UsageError` for a name that the system's zone data does not have.
    """
    if not name:
        return None
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"unknown time zone {name!r}",
            hint="Use a name such as Europe/Berlin or UTC; a system without zone data needs: pip install tzdata",
        ) from None


def human_day(now: datetime | None = None, tz: str = "") -> str:
    """`YYYY-MM-DD` of a moment (default: this one) in the user's zone (empty: the system's).

    Raises `ValueError` for a moment without a zone, `UsageError` for an unknown zone.
    """
    return _aware(now).astimezone(zone(tz)).date().isoformat()


def utc_iso(now: datetime | None = None) -> str:
    """`2026-05-10T08:30:00.123Z`: UTC with milliseconds, which are cut and not rounded."""
    return _aware(now).astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def file_stamp(now: datetime | None = None) -> str:
    """A moment (default: this one) as `utc_iso` gives it, in characters that every file system takes."""
    return utc_iso(now).replace(":", "-")


def unix_ms() -> int:
    """This moment in Unix milliseconds, as messages and sessions.json have it."""
    return int(time.time() * 1000)


def parse_iso_ms(text: str) -> int | None:
    """Unix milliseconds of an ISO time; None when it cannot be read. No zone means UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _aware(now: datetime | None) -> datetime:
    if now is None:
        return utc_now()
    if now.tzinfo is None:
        raise ValueError(f"{now.isoformat()} has no time zone")
    return now

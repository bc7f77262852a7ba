"""Times: the day as the user sees it, and UTC stamps as the session format writes them."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lamella.errors import UsageError


def utc_now() -> datetime:
    """This moment, in UTC."""
    return datetime.now(UTC)


def zone(name: str) -> tzinfo | None:
    """The zone of that name; None, which `astimezone` takes for the system's zone, when it is empty.

    Raises `UsageError` for a name that the system's zone data does not have.
    """
    if not name:
        return None
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


def _aware(now: datetime | None) -> datetime:
    if now is None:
        return utc_now()
    if now.tzinfo is None:
        raise ValueError(f"{now.isoformat()} has no time zone")
    return now

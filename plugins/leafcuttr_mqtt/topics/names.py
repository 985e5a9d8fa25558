"""Which texts are topic names and topic filters, and whether one matches the other (5.0 and 3.1.1, sections 4.7; 5.0,
section 4.8.2 for shared subscriptions). Which subscriptions a topic matches, of many, is `tree`'s."""

import re
from typing import Final

MAX_BYTES: Final = 65_535
"""Of a name or filter in UTF-8 (1.5.4, [MQTT-4.7.3-3])."""

MAX_LEVELS: Final = 200
"""Of a topic that messages are published on, and of a filter that is subscribed to. The specification has no bound
(4.7.3), so a name with more is valid; it is refused as one that is not accepted. Each level takes memory, 65,535 of
them some megabytes. Mosquitto has the same bound."""

SHARED: Final = "$share/"
"""What the filter of a shared subscription begins with ([MQTT-4.8.2-1])."""

_WILDCARDS: Final = re.compile(r"[+#]")


def why_no_name(text: str) -> str | None:
    """Why a text is no topic name, in one clause; None if it is one."""
    wrong = _why_no_topic(text)
    if wrong is None and _WILDCARDS.search(text):
        return "it has a wildcard, + or #"  # [MQTT-3.3.2-2], [MQTT-4.7.1-1]
    return wrong


def why_no_filter(text: str) -> str | None:
    """Why a text is no topic filter, in one clause; None if it is one. It may be that of a shared subscription, with
    `$share/<name>/`."""
    wrong = _why_no_topic(text)
    if wrong is not None:
        return wrong
    if text.startswith(SHARED):
        name, slash, text = text.removeprefix(SHARED).partition("/")
        if not name:
            return "a shared subscription needs a name: $share/<name>/<filter>"  # [MQTT-4.8.2-1]
        if _WILDCARDS.search(name):
            return "the name of a shared subscription has no + and no #"  # [MQTT-4.8.2-2]
        if not slash or not text:
            return "a shared subscription needs a filter: $share/<name>/<filter>"  # [MQTT-4.8.2-2]
    at = text.find("#")
    if at >= 0 and at != len(text) - 1:
        return "# is allowed at the end only"  # [MQTT-4.7.1-1]
    if at > 0 and text[at - 1] != "/":
        return "# has to be a level of its own"  # [MQTT-4.7.1-1]
    if "+" in text and any("+" in level and level != "+" for level in text.split("/")):
        return "+ has to be a level of its own"  # [MQTT-4.7.1-2]
    return None


def why_too_deep(text: str) -> str | None:
    """Why a valid name or filter is not accepted all the same; None if it is."""
    if len(text) < MAX_LEVELS or (slashes := text.count("/")) < MAX_LEVELS:
        return None
    return f"it has {slashes + 1:,} levels; allowed are {MAX_LEVELS}"


def parse_shared(text: str) -> tuple[str | None, str]:
    """A valid topic filter as the name of its shared subscription, None if it is not of one, and the filter that
    messages are compared with."""
    if not text.startswith(SHARED):
        return None, text
    name, _, rest = text.removeprefix(SHARED).partition("/")
    return name, rest


def has_wildcard(text: str) -> bool:
    """Whether a topic filter can match more than one topic."""
    return _WILDCARDS.search(text) is not None


def matches(topic_filter: str, topic: str) -> bool:
    """Whether a topic name matches a filter; both are valid, the filter is without `$share/<name>/`."""
    if topic_filter == topic:
        return True
    if topic[0] == "$" and topic_filter[0] in "+#":  # [MQTT-4.7.2-1]
        return False
    wanted, levels = topic_filter.split("/"), topic.split("/")
    if wanted[-1] == "#":  # also the level above it: `sport/#` matches `sport` (4.7.1.2)
        del wanted[-1]
        if len(levels) < len(wanted):
            return False
    elif len(levels) != len(wanted):
        return False
    return all(one in ("+", level) for one, level in zip(wanted, levels, strict=False))


def have_common_topics(one: str, other: str) -> bool:
    """Whether there can be a topic that matches both filters; they are valid and without `$share/<name>/`."""
    if (one[0] == "$" and other[0] in "+#") or (other[0] == "$" and one[0] in "+#"):  # [MQTT-4.7.2-1]
        return False
    first, second = one.split("/"), other.split("/")
    for here, there in zip(first, second, strict=False):
        if "#" in (here, there):
            return True
        if here != there and "+" not in (here, there):
            return False
    if len(first) == len(second):
        return True
    longer, common = (first, len(second)) if len(first) > len(second) else (second, len(first))
    return longer[common] == "#"  # it also matches the level above it


def _why_no_topic(text: str) -> str | None:
    """What is wrong with both a name and a filter."""
    if not text:
        return "it is empty"  # [MQTT-4.7.3-1]
    if "\0" in text:
        return "it has a null character"  # [MQTT-4.7.3-2], [MQTT-1.5.4-2]
    if text.isascii():
        length = len(text)
    else:
        try:
            length = len(text.encode())
        except UnicodeEncodeError:
            return "it has a surrogate, which UTF-8 cannot write"  # [MQTT-1.5.4-1]
    return None if length <= MAX_BYTES else f"it has {length:,} bytes; allowed are {MAX_BYTES:,}"

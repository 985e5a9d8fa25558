"""The keys of the file itself, and those of a step that all operations have."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from leafcuttr_spark.pipelines import model
from leafcuttr_spark.pipelines.reading.format_parts import NAME
from leafcuttr_spark.pipelines.reading.kinds import (
    PROPERTIES,
    WRONG,
    AnyText,
    At,
    Choice,
    Defs,
    Duration,
    Key,
    Kind,
    Named,
    Part,
    Share,
    Text,
    Whole,
    WrongValueError,
    described,
    unknown_key,
)
from leafcuttr_spark.pipelines.reading.sink_parts import SINK
from leafcuttr_spark.pipelines.reading.source_parts import SOURCE
from leafcuttr_spark.pipelines.reading.step_parts import BY_NAME
from leafcuttr_spark.pipelines.reading.variables import nearest
from leafcuttr_spark.pipelines.reading.yaml_nodes import Entries, Items, Node, Scalar

_FRAME_NAME: Final = r"\w+"


class _Registry(Kind):
    """The address of a registry, or properties with `url` for it."""

    words = "an address, or properties of Confluent's clients with url: {url: ..., basic.auth.user.info: ...}"

    def read(self, node: Node, at: At) -> Mapping[str, str]:
        if isinstance(node, Entries):
            found = PROPERTIES.read(node, at)
            if "url" in found:
                found["schema.registry.url"] = found.pop("url")
            if "schema.registry.url" not in found:
                raise WrongValueError(node.line, "the key url is missing: the address of the registry")
            return found
        return {"schema.registry.url": Text(self.words).read(node, at)}

    def schema(self, defs: Defs) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, PROPERTIES.schema(defs)]}


class _Steps(Kind):
    """A list of steps."""

    words = "a list of steps, each with one operation, as `- filter: amount > 10`"

    def read(self, node: Node, at: At) -> list[model.Step]:
        if isinstance(node, Scalar) and node.is_null:
            return []
        if not isinstance(node, Items):
            raise self.refuse(node)
        return [
            step for index, item in enumerate(node.items) if (step := _read_step(item, index, at)) is not None
        ]

    def schema(self, defs: Defs) -> dict[str, Any]:
        defs["step"] = step_schema(defs)
        return {"type": "array", "items": {"$ref": "#/$defs/step"}}


STEP_KEYS: Final = (
    Key(
        "name",
        Text("a name of letters, digits and _", _FRAME_NAME),
        "The name of the frame that it makes.",
        "the operation and its number, as `filter_1`",
    ),
    Key(
        "from",
        Text("the name of a frame"),
        "The frame that it takes: a source, a step before it, or a branch.",
        "the step before; of the first the only source that is no table",
    ),
)


def step_schema(defs: Defs) -> dict[str, Any]:
    """The JSON Schema of a step: the keys of all, and one operation."""
    operations = {one.name: {"description": one.what, **one.kind.schema(defs)} for one in BY_NAME.values()}
    return {
        "type": "object",
        "properties": {**{key.name: described(key, defs) for key in STEP_KEYS}, **operations},
        "additionalProperties": False,
        "oneOf": [{"required": [name]} for name in operations],
    }


def _read_step(node: Node, index: int, at: At) -> model.Step | None:
    at = At(at.faults, f"steps[{index}]")
    if not isinstance(node, Entries):
        at.wrong(node.line, f"a step is a mapping with one operation: {', '.join(BY_NAME)}")
        return None
    operations = [(key, value) for key, value in node.entries if key.text in BY_NAME]
    name_node = node.get("name")
    default = f"{operations[0][0].text.replace('-', '_')}_{index + 1}" if operations else f"step_{index + 1}"
    name = default if name_node is None else at.within("name").read(STEP_KEYS[0].kind, name_node)
    if name is WRONG:
        name = default
    at = At(at.faults, f"steps[{index}] ({name})")
    from_node = node.get("from")
    from_ = None if from_node is None else at.within("from").read(STEP_KEYS[1].kind, from_node)
    known = {**{key.name: key for key in STEP_KEYS}, **BY_NAME}
    for key, _ in node.entries:
        if key.text not in known:
            at.wrong(key.line, unknown_key(key.text, known))
    if len(operations) > 1:
        given = " and ".join(key.text for key, _ in operations)
        at.wrong(operations[1][0].line, f"a step has one operation; {given} are two steps")
    if not operations:
        if all(key.text in known for key, _ in node.entries):
            at.wrong(node.line, f"the operation is missing: {', '.join(BY_NAME)}")
        return None
    key, value = operations[0]
    operation = BY_NAME[key.text]
    made = at.at_key(key).read(operation.kind, value)
    if made is WRONG or from_ is WRONG:
        return None
    return model.Step(name, operation.make(made), from_, node.line, index)


class _Frames(Named):
    """Sources or sinks by their names."""

    def read(self, node: Node, at: At) -> dict[str, Any]:
        if not isinstance(node, Entries) or not node.entries:
            raise self.refuse(node)
        found = {}
        for key, value in node.entries:
            name = at.text(key)
            part = At(at.faults, f"{at.path}.{name}")
            if at.path == "sources" and not Text("", _FRAME_NAME).is_like(name):
                part.wrong(
                    key.line, "the name of a source has letters, digits and _, so that queries can name it"
                )
            read = part.read(self.of, value)
            if read is not WRONG and read is not None:
                found[name] = replace(read, line=key.line)
        return found


def _make_session(values: Mapping[str, Any], node: Node, at: At) -> model.SessionSettings:
    if "master" in values and "remote" in values:
        at.wrong(node.line, "master and remote exclude each other")
    return model.SessionSettings(values.get("master"), values.get("remote"), values.get("config", {}))


SESSION: Final = Part(
    "session",
    "Which Spark.",
    (
        Key(
            "master",
            Text("an address of Spark"),
            "`local[*]`, `spark://host:7077`, `yarn`, `k8s://...`.",
            "local[*]",
        ),
        Key(
            "remote",
            Text("an address of Spark Connect, as sc://host:15002"),
            "A Spark Connect server instead.",
        ),
        Key("config", PROPERTIES, "Settings of Spark by their names, as `spark.sql.shuffle.partitions`."),
    ),
    _make_session,
    short=Text("an address of Spark"),
    short_key="master",
    example='{master: "local[2]", config: {spark.sql.shuffle.partitions: 2}}',
)


def _make_trigger(values: Mapping[str, Any], node: Node, at: At) -> model.Trigger:
    if values.get("every") == "available-now" or values.get("available-now"):
        return model.Trigger(available_now=True)
    return model.Trigger(values.get("every", model.Trigger().every_ms))


class _Every(Duration):
    """A duration, or `available-now`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", "a duration, as 500ms, 5s or 1m, or available-now")

    def parse(self, text: str, at: At) -> Any:
        return text if text == "available-now" else super().parse(text, at)

    def schema(self, defs: Defs) -> dict[str, Any]:
        return {"anyOf": [{"enum": ["available-now"]}, super().schema(defs)]}


TRIGGER: Final = Part(
    "trigger",
    "When batches begin: `{every: 5s}`, or `available-now`, which reads what is there and ends.",
    (
        Key("every", _Every(), "A batch begins so often, or as soon as the one before is done.", "1s"),
        Key("available-now", Choice(("true",)), "Read what is there in batches, then end."),
    ),
    _make_trigger,
    short=_Every(),
    short_key="every",
    example="{every: 5s}",
)

LIMITS: Final = Part(
    "limits",
    "How much at once.",
    (
        Key(
            "records-per-batch",
            Whole(),
            "So many records a batch reads at most, the first one too.",
            "100000",
        ),
    ),
    lambda values, node, at: values.get("records-per-batch"),
    example="{records-per-batch: 100000}",
)

STATE: Final = Part(
    "state",
    "Where state is kept.",
    (Key("store", Choice(("rocksdb", "memory")), "On disk, or in the memory of executors.", "rocksdb"),),
    lambda values, node, at: values.get("store", "rocksdb"),
    short=Choice(("rocksdb", "memory")),
    short_key="store",
    example="{store: rocksdb}",
)


def _make_dead_letters(values: Mapping[str, Any], node: Node, at: At) -> model.DeadLetters:
    return model.DeadLetters(
        values["topic"],
        values.get("stop-after"),
        values.get("stop-above"),
        values.get("window", 1000),
        values.get("cluster", model.MAIN),
    )


DEAD_LETTERS: Final = Part(
    "dead-letters",
    "Where records go that cannot be decoded, at which a function fails, or that come late. Without it the first"
    " such record"
    " stops the pipeline.",
    (
        Key("topic", Text("the name of a topic"), "The topic.", required=True),
        Key(
            "stop-after",
            Whole(),
            "The dead letter of this number in one run stops the pipeline: with 1 the first one.",
            "never",
        ),
        Key("stop-above", Share(), "A larger share of the last `window` records stops it.", "never"),
        Key("window", Whole(), "Of how many records.", "1000"),
        Key(
            "cluster",
            Text("a name of `clusters`"),
            "Which cluster, of several: that of the sinks.",
            model.MAIN,
        ),
    ),
    _make_dead_letters,
    short=Text("the name of a topic"),
    short_key="topic",
    example="{topic: orders-dead, stop-after: 100, stop-above: 1%}",
)


PIPELINE: Final = Part(
    "pipeline",
    "A file has one pipeline.",
    (
        Key(
            "pipeline",
            Text("a name of letters, digits, `.`, `_` and `-`", NAME),
            "Its name: of the query, of the group whose offsets show the lag, and the start of transactional"
            " ids. No other pipeline on the cluster has it.",
            required=True,
        ),
        Key(
            "variables",
            Named(AnyText(), "names with texts", empty=True),
            "What `${name}` in any text stands for. `--set name=value` wins; one without a value has to be set.",
        ),
        Key(
            "cluster",
            PROPERTIES,
            "Properties of Kafka's clients, `bootstrap.servers` among them.",
            "bootstrap.servers: localhost:9092",
        ),
        Key(
            "clusters",
            Named(PROPERTIES, "names with properties of Kafka's clients"),
            "Several clusters by name; sources and sinks say which by `cluster`.",
        ),
        Key(
            "registry",
            _Registry(),
            "The schema registry: its address, or `url` and other properties of Confluent's clients. Formats"
            " with subjects need it.",
        ),
        Key("session", SESSION, SESSION.what + " The address, or a mapping."),
        Key(
            "checkpoint",
            Text("a path or an address of Spark"),
            "Where the pipeline keeps its offsets and its state, from the folder of the file.",
            "~/.local/state/leafcuttr/spark/NAME",
        ),
        Key("trigger", TRIGGER, TRIGGER.what, "every 1s"),
        Key("limits", LIMITS, LIMITS.what),
        Key(
            "idle",
            Duration(never=True),
            "After which time without records a source no longer holds the watermark.",
            "30s",
        ),
        Key("state", STATE, STATE.what, "rocksdb"),
        Key(
            "sources", _Frames(SOURCE, "names with sources"), "Where rows come from, by name.", required=True
        ),
        Key("steps", _Steps(), "What is done, in order."),
        Key("sinks", _Frames(SINK, "names with sinks"), "Where rows go, by name.", required=True),
        Key("dead-letters", DEAD_LETTERS, DEAD_LETTERS.what + " The name of the topic, or a mapping."),
        Key(
            "late",
            Choice(("count", "dead-letters")),
            "What becomes of rows that come behind the watermark.",
            "count",
        ),
    ),
    lambda values, node, at: values,
)


def unknown_variable(name: str, declared: Mapping[str, object]) -> str:
    """The line for a value that is set for a variable which the file does not have."""
    has = f"; it has {', '.join(declared)}" if declared else "; it has none"
    return f"--set {name}: the file has no variable of this name{nearest(name, declared) or has}"

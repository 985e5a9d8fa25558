"""The descriptors of a schema in a pool of their own: nothing of it gets into the pool that the process shares, and it
goes with the schema."""

from collections import Counter
from collections.abc import Iterator, Sequence

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from leafcuttr_registry.protobuf.model import Source
from leafcuttr_sdk.schemas import SchemaError


def pool_of(order: Sequence[Source]) -> DescriptorPool | None:
    """`order`: files, each one after those that it imports. None for messages that are right and larger than the
    runtime of Python can hold: about 64 KiB of fields. Raises SchemaError where protobuf refuses a file."""
    pool = DescriptorPool()
    for source in order:
        proto = source.proto
        try:
            pool.Add(proto)
        except TypeError as error:
            if "mini table" in str(error):
                return None
            try:
                pool.Add(_with_own_json_names(proto))
            except TypeError as error:
                if "mini table" in str(error):
                    return None
                raise SchemaError(f"protobuf refuses the schema: {' '.join(str(error).split())}") from None
    return pool


def _with_own_json_names(proto: FileDescriptorProto) -> FileDescriptorProto:
    """protoc only warns where JSON names that it made are the same, in proto2; the runtime wants them different."""
    copy = FileDescriptorProto()
    copy.CopyFrom(proto)
    for message in _messages(copy.message_type):
        names = [field.name for field in message.field]
        counts = Counter(name for field in message.field for name in {field.name, field.json_name})
        for field in message.field:
            if counts[field.json_name] > 1:
                field.json_name = (
                    field.name if names.count(field.name) == 1 else f"{field.name}_{field.number}"
                )
    return copy


def _messages(messages: Sequence[DescriptorProto]) -> Iterator[DescriptorProto]:
    for message in messages:
        yield message
        yield from _messages(message.nested_type)

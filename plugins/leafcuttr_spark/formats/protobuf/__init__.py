"""Protobuf: `schema` has descriptors and types, `reading` makes columns of messages, `writing` messages of columns."""

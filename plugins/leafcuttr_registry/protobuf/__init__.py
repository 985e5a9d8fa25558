"""Protobuf as a format of schemas: `.proto` texts and serialized descriptors, without protoc.

lexer           from a text to tokens
cursor          a place in the tokens, and what parsers take from it
tree            what a text says, before names mean anything
parser          from tokens to the tree: files, services; `messages` and `option_parser` do the rest
model           what names mean: messages, fields, enums of all files of a schema
describe        from the tree to descriptors and names
resolve         gives names of types their meaning; `defaults` has default values
options         options of all elements; `interpret` finds their fields and encodes them, `wire` is the encoding
features        the features of editions
check           what protoc refuses besides; `check_messages`, `check_enums`, `check_editions`
link            all of it, for a file and what it imports
builtin         files that need no reference; `adopt` takes them over
serialized      schemas that are descriptors; `undescribe` and `decode_options` make trees of them
printer         canonical texts; `option_printer` their options
normalize       trees without differences that mean nothing
compare         compatibility; `compare_oneofs` what became of `members`; `rules` the table of what breaks
pool            descriptors for protobuf's runtime, apart for each schema
codec           data to JSON and back
schema          a schema that was read
format          what the registry uses
"""

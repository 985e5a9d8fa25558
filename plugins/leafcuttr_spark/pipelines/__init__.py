"""What a pipeline is: without Spark, and importable where it is not installed.

`model`           a pipeline with its sources, steps and sinks, as typed objects
`operations`      what a step can do
`errors`          what is wrong, in one line each, with the place in the file
`reading`         from a file: YAML, variables, secrets; the tables of all keys
`checking`        what is wrong with a pipeline: its graph, its columns and types
`drawing`         the graph as text, as a diagram, as JSON
`json_schema`     of files, for editors
`reference_page`  of all keys
"""

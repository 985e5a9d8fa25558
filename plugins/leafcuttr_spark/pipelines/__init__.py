"""What a pipeline is: without Spark, and importable where it is not installed.

`model`       a pipeline with its sources, steps and sinks, as typed objects
`operations`  what a step can do
`errors`      what is wrong, in one line each, with the place in the file
"""

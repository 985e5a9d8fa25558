"""What is wrong with a pipeline, found without Spark.

    `graph`      frames: unknown ones, circles, those that nothing reads, what streams cannot do
    `queries`    Spark SQL as trees
    `types`      types of columns
    `columns`    the columns of frames, through all steps
    `whole`      all of it: `check_pipeline`, `load_pipeline`

Only what is certain is a fault: a column or a type that cannot be known is unknown, and passes.
"""

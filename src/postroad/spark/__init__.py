"""Topics as DataFrames, without a jar: the data source `postroad` of PySpark."""

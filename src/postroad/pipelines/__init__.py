"""The jobs that every queue's owner needs, on Spark."""

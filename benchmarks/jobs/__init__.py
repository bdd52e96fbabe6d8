"""The same jobs for each framework of background jobs: one module for each, run in an environment of its own.

    python -m celery_jobs publish 5000      so many jobs, as fast as the framework publishes
    python -m celery_jobs pace 300          one after the other, a few milliseconds apart, with the time

The environment says where the broker is (BENCH_URL), where a worker notes what it has done (BENCH_NOTES), and
how many jobs it waits for (BENCH_COUNT).
"""

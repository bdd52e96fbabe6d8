"""The invariants, one file each: what a history must never show."""

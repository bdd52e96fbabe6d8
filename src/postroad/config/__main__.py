"""`python -m postroad.config > docs/configuration.md`: the reference, from the declarations."""

from postroad.config.printing import reference

print(reference(), end="")

"""The helper of a gateway, as a process."""

from postroad.gateway.scans.worker import main

if __name__ == "__main__":
    main()

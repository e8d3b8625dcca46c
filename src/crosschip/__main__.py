"""`python -m crosschip` is the command `crosschip`."""

from crosschip.cli import main

if __name__ == "__main__":
    main()

"""slovorez splits Russian words into their parts."""

from benchmarks.programs import Run


def load() -> Run:
    from slovorez import Slovorez

    model = Slovorez.from_pretrained("slovorez-test", device="cpu")
    return lambda: model.predict("Переподготовка учительница безразличие подснежник")

"""Reads the text in a picture with the PP-OCRv4 models; the pipeline behind `crosschip demo`.

- `picture`: loads a picture, and turns it into what the models take.
- `detection`: where there is text (DB).
- `recognition`: which way up a line of text is, and what it says (CTC).
- `reader`: `Reader` joins the three models, `draw` shows what was found.
- `picture.png`, `picture.txt`: the demo picture and the lines printed on it.

Nothing here knows how a model runs: a model is a callable that takes an array and returns one.
"""

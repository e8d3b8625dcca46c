"""Reads the text in a picture with the PP-OCRv4 models; the pipeline behind `crosschip demo`.

- `models`: where the three models are.
- `ocr`: the models, compiled by crosschip.
- `picture`: loads a picture, and turns it into what the models take.
- `detection`: where there is text (DB).
- `recognition`: which way up a line of text is, and what it says (CTC).
- `reader`: `Reader` joins the three models, `draw` shows what was found.
- `picture.png`, `picture.txt`: the demo picture and the lines printed on it.

Only `ocr` knows how a model runs: for the others, a model is a callable that takes an array and
returns one.
"""

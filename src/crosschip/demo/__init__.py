"""Reads the text in a picture with the PP-OCRv4 models; the pipeline behind `crosschip demo`.

- `models`: the location of the three models.
- `ocr`: the models, compiled by crosschip.
- `picture`: loads a picture and converts it to the models' input.
- `detection`: finds lines of text (DB).
- `recognition`: finds the orientation of a line and reads its text (CTC).
- `reader`: `Reader` combines the three models, `draw` draws the lines.
- `picture.png`, `picture.txt`: the demo picture and the lines printed on it.

Only `ocr` knows how a model runs: for the others, a model is a callable that takes an array and
returns one.
"""

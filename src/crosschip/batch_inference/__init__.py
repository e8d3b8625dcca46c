"""Batch inference: a model run over many files.

`map_files` yields the outputs for each file; `BatchJob` writes them to a folder, resumably.
"""

from crosschip.batch_inference.file_list import list_files
from crosschip.batch_inference.job import BatchJob
from crosschip.batch_inference.mapping import map_files

__all__ = ["BatchJob", "list_files", "map_files"]

"""Images and the pipeline that feeds them to the workers.

datasets    load a data set; order, shard, batch it
cifar10     the files of CIFAR-10
formats     a folder of images, TFRecords, arrays
shares      who reads which sample: coverage of shares
"""

from labs.data.datasets import (
    DataError,
    DataNotFoundError,
    Dataset,
    balanced,
    batches,
    check_batch,
    images_per_epoch,
    load,
    order,
    pipeline,
    steps,
)

__all__ = [
    "DataError",
    "DataNotFoundError",
    "Dataset",
    "balanced",
    "batches",
    "check_batch",
    "images_per_epoch",
    "load",
    "order",
    "pipeline",
    "steps",
]

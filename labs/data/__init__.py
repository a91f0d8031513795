"""Images and the pipeline that feeds them to the workers.

dataset     what a data set is in memory
datasets    load one by its name
cifar10     the files of CIFAR-10
batching    order, shard, batch it
formats     a folder of images, TFRecords
shares      who reads which sample: coverage of shares
"""

from labs.data.batching import batches, check_batch, order, pipeline
from labs.data.dataset import DataError, Dataset
from labs.data.datasets import balanced, load

__all__ = ["DataError", "Dataset", "balanced", "batches", "check_batch", "load", "order", "pipeline"]

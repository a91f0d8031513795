"""Images and the pipeline that feeds them to the workers.

datasets    what a data set is in memory; load one by its name
cifar10     the files of CIFAR-10
batching    order, shard, batch it
"""

from labs.data.batching import batches, check_batch, order, pipeline
from labs.data.datasets import Dataset, load

__all__ = ["Dataset", "batches", "check_batch", "load", "order", "pipeline"]

"""ResNet50V2 with Horovod: the same training in 1, 2 or many processes, on one machine or several.

A process is a rank, and has one worker: a GPU, or a CPU core where there is no GPU. --batch_size is the global
batch: the images of one step over all ranks. Start it with horovodrun, mpiexec or srun.
"""

import argparse

from labs import data, devices, hvd, models, ranks, training  # import this first: it sets up TensorFlow

import keras

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch_size", type=int, default=256, help="images per step, over all ranks")
training.arguments(parser)
args = training.parse(parser)

# 1. Start Horovod: after this, each process knows its rank and their number, the size.
...  # your code here

# 2. One worker for this rank, a GPU or a core: `devices.pin`, with the local rank and the machine's local size.
worker = ...  # your code here
print(f"Rank {hvd.rank()} of {hvd.size()} on {worker}", flush=True)

ranks.agree(**vars(args))  # the same options on all ranks, or it stops here

keras.utils.set_random_seed(args.seed + hvd.rank())  # other weights on each rank, until they are broadcast
dataset = data.load(args.dataset, images=args.images)
numbers = data.order(dataset, args.batch_size, seed=args.seed)  # of all samples, in one order for all ranks

# 3. This rank's share of the sample numbers: every size-th one, from its rank on.
mine = ...  # your code here
ranks.check_shards(mine, len(dataset.labels), dropped=len(dataset.labels) % args.batch_size)
train = data.batches(dataset, mine, args.batch_size // hvd.size())

# 4. The rate by the linear rule (one worker: 0.01), and SGD that averages its gradients over the ranks.
learning_rate = ...  # your code here
optimizer = ...  # your code here

network = keras.applications.ResNet50V2(
    include_top=True, weights=None, classes=len(dataset.classes), input_shape=(args.image_size, args.image_size, 3)
)
model = keras.Sequential([models.preprocessing(args.image_size), network])
model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=False)

# 5. A list of two callbacks: all ranks begin with the weights of rank 0, and average their metrics.
callbacks = ...  # your code here

# 6. One log, not one for each rank: verbose is 2 on rank 0 and 0 on all others.
verbose = ...  # your code here
if hvd.rank() == 0:
    print(f"Model ResNet50V2 {hvd.size()} workers")
    print("Strategy: horovod")
    print(f"Batch_size: {args.batch_size}")
    print(f"N_replicas: {hvd.size()}")
    print(f"Images: {len(dataset.images)}")
    print(f"Learning_rate: {learning_rate}", flush=True)

recorder = training.Recorder(args, model, images=len(dataset.images))
for _ in training.repeats(args, recorder, model):
    model.fit(train, epochs=args.epochs, shuffle=False, verbose=verbose, callbacks=[*callbacks, recorder])

if hvd.rank() == 0:
    print(f"Weights identical on all {hvd.size()} ranks: {recorder.record.weights['identical']}", flush=True)

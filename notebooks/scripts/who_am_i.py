"""Says who this process is. Start it with 1, 2 or 4 ranks and count the lines."""

from labs import hvd

hvd.init()
print(f"I am rank {hvd.rank()} of {hvd.size()}, local rank {hvd.local_rank()} of {hvd.local_size()}", flush=True)

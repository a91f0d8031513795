"""Many workers, one network (T2).

sgd         synchronous and asynchronous training of one layer, with simulated seconds
stragglers  what a barrier costs when workers are not equally fast
pictures    the figures
"""

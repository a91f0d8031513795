"""Questions of 01_basic_concepts, second half: platforms, three parallelisms, memory (T1)."""

from labs.checks.judging import choice, prediction, question, written
from labs.lessons.nb01.questions import HERE, near

prediction("01.13", "Idle share of model parallelism on 4 devices", HERE)


@question(
    "01.12",
    "2 nodes with 4 GPUs each: who computes where",
    HERE,
    points=2,
    why="A process reaches its own node. Beyond it there must be more, and hvd.size() counts them.",
)
def platforms(mirrored, processes, size):
    mirrored, processes, size = float(mirrored), float(processes), float(size)
    if mirrored == 8:
        return "First number: a process cannot use the GPUs of another node. How many are in its own?"
    if mirrored == 1:
        return "First number: one GPU is what a program without strategy takes. What does MirroredStrategy take?"
    if mirrored != 4:
        return "First number: count the GPUs that one process can reach."
    if processes == 2:
        return "Second number: one process for each node would do for MirroredStrategy. Horovod wants more of them."
    if processes == 1:
        return "Second number: with one process Horovod trains on one GPU."
    if processes != 8:
        return "Second number: one process for each GPU, on all nodes."
    if size == 8:
        return "Third number: that is how many GPUs the job has. What does hvd.size() count?"
    if size == 4:
        return "Third number: that is how many GPUs a node has. What does hvd.size() count?"
    if size != 2:
        return "Third number: hvd.size() counts what you have started."


@question(
    "01.14",
    "Idle share of a pipeline",
    HERE,
    points=2,
    why="Of M + K - 1 turns, each device works in M and waits in K - 1.",
)
def bubble(function):
    pairs = [(4, 4), (2, 1), (8, 3), (1, 5)]
    got = [float(function(*pair)) for pair in pairs]

    def are(formula):
        return all(near(value, formula(k, m), 1e-6) for value, (k, m) in zip(got, pairs, strict=True))

    if are(lambda k, m: (k - 1) / (m + k - 1)):
        return None
    if are(lambda k, m: (k - 1) / k):
        return "This is the share without micro-batches. Where does their number come in?"
    if are(lambda k, m: (k - 1) / m):
        return "This divides waiting by working. What is the share of waiting in *all* turns of a device?"
    if are(lambda k, m: m / (m + k - 1)):
        return "This is the share in which a device works. In which share does it wait?"
    if are(lambda k, m: (m - 1) / (m + k - 1)):
        return "Devices and micro-batches are exchanged: a single device never waits, whatever the micro-batches."
    if are(lambda k, m: (k - 1) / (m + k)):
        return "Nearly: count the turns once more, with 2 devices and 1 micro-batch. When is the last one done?"
    if are(lambda k, m: (k - 1) / (m * k)):
        return "The turns of the devices overlap, so their number is no product of the two."
    return f"For 4 devices and 4 micro-batches your function gives {got[0]:.3g}. Count boxes and gaps in the picture."


@question(
    "01.15",
    "Micro-batches for an idle share of at most 10 % on 4 devices",
    HERE,
    why="Waiting stays at K - 1 turns, so working must be 9 times as long: 9 times 3 turns.",
)
def enough(count):
    count = float(count)
    share = 3 / (count + 3) if count > 0 else 1.0
    if count == 27:
        return None
    if count > 0 and count != int(count):
        return "Micro-batches are whole: round to the side that keeps the share at 10 % or below."
    if count == 4:
        return "These are the devices. With as many micro-batches the idle share is that of the picture above."
    if share > 0.1:
        return f"With {count:g} the idle share is {share:.1%}. That is more than 10 %."
    if count == 30:
        return "Ten times the 3 waiting turns. But 10 % of *all* turns, waiting and working, are asked for."
    return f"With {count:g} the idle share is {share:.1%}, so this is enough. But fewer are enough, too."


choice(
    "01.16",
    "Why not always more micro-batches?",
    HERE,
    right="a",
    wrong={
        "b": "Put 20, then 200 into your formula: which way does it go?",
        "c": "The gradients of all micro-batches are summed before the one update: all are of the same weights.",
        "d": "A device keeps its weights once. What it keeps for each micro-batch are activations.",
    },
    why="The waiting falls, but a device needs enough work in one piece to be fast.",
)

choice(
    "01.17",
    "What travels?",
    HERE,
    right="c",
    wrong={
        "a": "If weights were exchanged after an epoch only, the copies would be different networks during the epoch.",
        "b": "Exchanged: in model parallelism nobody else has these weights, so nobody needs their gradients.",
        "d": "In model parallelism a device has the only copy of its layers: their gradients need not leave it.",
    },
    why="Copies must agree on a gradient; neighbours in a chain must hand on what is between their layers.",
)


@question(
    "01.18",
    "Bytes of weights, gradients and momentum",
    HERE,
    points=2,
    why="Three numbers for each parameter, 4 bytes each, and no image has been read yet.",
)
def state_bytes(function):
    value = float(function(1000))
    if near(value, 12_000) and near(float(function(25_613_800)), 12 * 25_613_800):
        return None
    if near(value, 4000):
        return "These are the weights alone. What else has one number for each of them?"
    if near(value, 8000):
        return "Two numbers for each parameter: one of weights, gradients and momentum is missing."
    if near(value, 3000):
        return "This is how many numbers there are. How many bytes does a float32 take?"
    if near(value, 16_000):
        return "Four numbers for each parameter: that is Adam. How many does momentum keep?"
    if near(value, 96_000):
        return "These are bits. How many of them make a byte?"
    if near(value, 6000):
        return "This is for numbers of 16 bits. A float32 has 32."
    return f"For 1000 parameters your function gives {value:,.0f}. Three numbers for each, of how many bytes?"


choice(
    "01.19",
    "What each of 8 devices keeps under data parallelism",
    HERE,
    right="d",
    wrong={
        "a": "Set devices to 8 and leave sharded at nothing: which bars of the picture become shorter?",
        "b": "The batch of each device stays at 32 here. Only where it is divided do the activations become fewer.",
        "c": "After the all-reduce each device has the whole sum, and needs it, since it updates all weights itself.",
    },
    why="Data parallelism divides the samples and copies everything else.",
)


@question(
    "01.20",
    "Devices of 80 GB for 175 billion weights in 16 bit",
    HERE,
    why="350 GB, in pieces of at most 80 GB. And that is not yet a training.",
)
def devices_needed(count):
    count = float(count)
    if count == 5:
        return None
    if near(count, 4.375):
        return "The division is right. A device comes whole: which number of them is enough?"
    if count == 4:
        return "That many hold 320 GB. Is it enough?"
    if count in (8.75, 9):
        return "This is for numbers of 4 bytes. How many bytes are 16 bits?"
    if count in (2.1875, 3):
        return "This is for numbers of 1 byte. How many bytes are 16 bits?"
    if count in (17.5, 18):
        return "This holds gradients and the state of Adam, too. The question is about the weights alone."
    return "First the bytes of all weights, then how many times 80 GB that is, rounded to the safe side."


written("T1", "Data against model parallelism: advantages and disadvantages", HERE, points=4)

"""The networks of the course, and what a network needs.

networks    build a network for one image size
counts      parameters, bytes of gradient, multiply-adds, activations, memory by part
"""

from labs.models.counts import memory
from labs.models.networks import NAMES, build, check_size, network, preprocessing

__all__ = ["NAMES", "build", "check_size", "memory", "network", "preprocessing"]

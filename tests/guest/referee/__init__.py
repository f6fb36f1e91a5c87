"""A kernel of its own in a virtual machine, with rdma_rxe, as an independent peer for the device under test."""

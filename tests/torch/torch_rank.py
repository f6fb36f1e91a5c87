"""One rank of the tests of the backend: cases of values.py, messages.py and failures.py, one after the other. Prints "ok", or a
traceback.

    torch_rank.py STORE quick|grid CASE..."""

import sys

import torch
import torch.distributed as dist

import failures
import messages
import values
from ranks import STORE, begin

torch.set_num_threads(1)
begin(STORE)
for name in sys.argv[3:]:
    next(getattr(module, name) for module in (values, messages, failures) if hasattr(module, name))()
print("ok", flush=True)
if dist.is_initialized():
    dist.destroy_process_group()

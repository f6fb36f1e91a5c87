// NCCL's headers ask for it and use nothing of it here.
#pragma once

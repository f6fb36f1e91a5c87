#pragma once

#include <memory>

#include "device/completion_queue.h"
#include "device/shared_receive_queue.h"

namespace ringbolt::device {

/// Where a queue pair completes, and what it may share its receives with. A value; not thread-safe.
struct CompletionQueues {
  std::shared_ptr<CompletionQueue> send;
  std::shared_ptr<CompletionQueue> receive;
  SharedReceiveQueue* shared = nullptr;
};

}  // namespace ringbolt::device

#pragma once

#include <future>

#include "base/resolving.h"

namespace ringbolt::base::test {

/// A name service that answers nobody until this ends.
class DeadNameService {
 public:
  ~DeadNameService() { release_.set_value(); }
  LookUp look_up() const {
    return [released = released_](const char*, const char*, const addrinfo*, addrinfo**) {
      released.wait();
      return EAI_AGAIN;
    };
  }

 private:
  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
};

}  // namespace ringbolt::base::test

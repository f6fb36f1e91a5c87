// The root of the side channel: collects a block of every rank and hands all of them to each.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace ringbolt::jaccl {

/// Serves one group in a thread of its own, on 127.0.0.1, on an ephemeral port unless one is given.
class Coordinator {
 public:
  explicit Coordinator(int world, uint16_t port = 0);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  /// "127.0.0.1:port".
  std::string address() const;

 private:
  void serve();
  void accept_ranks();
  void gather(size_t block_bytes);

  int world_;
  int listener_;
  std::vector<int> ranks_;
  std::thread thread_;
};

}  // namespace ringbolt::jaccl

// The TCP side channel: a greeting with the rank, then all-gathers of blocks of agreed length.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ringbolt::jaccl {

/// One rank's connection to the coordinator. Every call has a time limit and throws
/// std::runtime_error when it passes or the coordinator goes away.
class SideChannel {
 public:
  /// `coordinator` is "address:port".
  SideChannel(const std::string& coordinator, int32_t rank, int world);
  ~SideChannel();
  SideChannel(const SideChannel&) = delete;
  SideChannel& operator=(const SideChannel&) = delete;

  /// Blocks of all ranks, in rank order.
  std::vector<uint8_t> all_gather(const void* block, size_t length_bytes);
  void barrier();

 private:
  int fd_;
  int world_;
};

/// Whole blocks over a socket with time limits; throw std::runtime_error otherwise.
void send_all(int fd, const void* data, size_t length_bytes);
void receive_all(int fd, void* data, size_t length_bytes);
void set_time_limit(int fd);

}  // namespace ringbolt::jaccl

#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "nccl/net_abi.h"

namespace ringbolt::tools::nccl_command {

/// The net plugin, loaded and driven as NCCL 2.28 does, by table v11. Throws FoundProblem with the call and its answer.
/// One thread.
class Plugin {
 public:
  explicit Plugin(const std::string& path);
  /// Closes all that was connected.
  ~Plugin();
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  using Handle = std::array<std::byte, 128>;
  void* listen(Handle& handle);
  void close_listener(void* listener);
  /// Null: not yet.
  void* connect(Handle& handle);
  void* accept(void* listener);
  void* send(void* comm, void* data, size_t size);
  void* receive(void* comm, void* data, size_t size);
  /// Whether the request is over; then `size` is how many bytes came or went.
  bool test(void* request, int& size);
  void close_send(void* comm);
  void close_receive(void* comm);

 private:
  const nccl::abi::NetV11* table_ = nullptr;
  void* context_ = nullptr;
};

/// Where the plugin is that was installed, or built, with this command.
std::string installed_plugin();

}  // namespace ringbolt::tools::nccl_command

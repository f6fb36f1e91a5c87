#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "json_text.h"
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
  /// Writes what a peer connects with into `handle`. The listener is closed by close_listener().
  void* listen(Handle& handle);
  void close_listener(void* listener);
  /// Null: not yet.
  void* connect(Handle& handle);
  void* accept(void* listener);
  /// A request, or null: none can be taken just now. `data` must stay until test() says that it is over; bytes.
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

/// One line of the table: messages of one size from one rank to another.
struct Figure {
  uint64_t size = 0;
  double time_us = 0;    ///< half the mean round trip of one message
  double gb_per_s = 0;   ///< of eight messages at a time
  uint64_t n_wrong = 0;  ///< messages that were not what had been sent
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Figure, size, time_us, gb_per_s, n_wrong)

/// The two connections between this rank and another one.
struct Pair {
  Plugin& plugin;
  void* send_comm = nullptr;
  void* receive_comm = nullptr;
  uint32_t rank = 0;  ///< this one
  uint32_t other = 0;
};

/// Measures messages from the lower rank to the higher (`is_up`), or the other way round; both call it. Whoever
/// receives has the figure. Throws FoundProblem.
std::optional<Figure> measure(Pair& pair, bool is_up, uint64_t size);

}  // namespace ringbolt::tools::nccl_command

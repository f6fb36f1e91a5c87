#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "group/join_options.h"
#include "ringbolt/status.h"
#include "ringbolt/types.h"

// What is behind the C border, function by function: ringbolt/group.h says what each does. Programs never see these,
// so that no type of the standard library crosses the shared object's border.
namespace ringbolt::group {

/// Owns a call until it is destroyed, which cancels it if it has not ended. One thread at a time.
class Request {
 public:
  Request();
  ~Request();
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;

  /// Never blocks for others; in a mesh of one rank it takes the lock, and has the call go on.
  bool is_done() const;
  /// Blocks until the call ends, at its own deadline at the latest. May be called again, with the same answer.
  Status wait();
  /// Whether it has ended, after so long at most.
  bool wait_for(uint64_t timeout_ms);
  /// The other ranks hear of it, and their calls fail with ECANCELED. No effect on one that has ended.
  void cancel();

 private:
  friend class Group;
  struct State;
  std::unique_ptr<State> state_;
};

/// Thread-safe. Throws JoinError and base::Error where the public class throws ringbolt::Error.
/// Holds a share of its communicator and of the mesh; what it has split off holds its own. Buffers are the program's,
/// which leaves them alone until the call has ended. Where a call has failed (ETIMEDOUT, ECONNRESET, EHOSTDOWN,
/// ECANCELED, EPROTO or another errno) its output holds anything.
class Group {
 public:
  /// Blocks until all ranks are there, for the environment's time to join at most.
  static Group join(const JoinOptions& options);
  ~Group();
  Group(Group&&) noexcept;
  Group& operator=(Group&&) noexcept;

  uint32_t rank() const;
  uint32_t size() const;

  Status all_reduce(const void* in, void* out, size_t count, Type type, Reduction reduction,
                    const CallOptions& options);
  Status reduce_scatter(const void* in, void* out, size_t count, Type type, Reduction reduction,
                        const CallOptions& options);
  Status all_gather(const void* in, void* out, size_t count, Type type, const CallOptions& options);
  Status all_gatherv(const void* in, void* out, std::span<const size_t> counts, Type type, const CallOptions& options);
  Status broadcast(void* data, size_t count, Type type, uint32_t root, const CallOptions& options);
  Status reduce(const void* in, void* out, size_t count, Type type, Reduction reduction, uint32_t root,
                const CallOptions& options);
  Status gather(const void* in, void* out, size_t count, Type type, uint32_t root, const CallOptions& options);
  Status scatter(const void* in, void* out, size_t count, Type type, uint32_t root, const CallOptions& options);
  Status all_to_all(const void* in, void* out, size_t count, Type type, const CallOptions& options);
  Status all_to_allv(const void* in, std::span<const size_t> sent, void* out, std::span<const size_t> received,
                     Type type, const CallOptions& options);
  Status barrier(const CallOptions& options = {});
  Status send(const void* data, size_t count, Type type, uint32_t peer, const CallOptions& options);
  Status recv(void* data, size_t count, Type type, uint32_t peer, const CallOptions& options);

  Request all_reduce_async(const void* in, void* out, size_t count, Type type, Reduction reduction,
                           const CallOptions& options);
  Request reduce_scatter_async(const void* in, void* out, size_t count, Type type, Reduction reduction,
                               const CallOptions& options);
  Request all_gather_async(const void* in, void* out, size_t count, Type type, const CallOptions& options);
  Request all_gatherv_async(const void* in, void* out, std::span<const size_t> counts, Type type,
                            const CallOptions& options);
  Request broadcast_async(void* data, size_t count, Type type, uint32_t root, const CallOptions& options);
  Request reduce_async(const void* in, void* out, size_t count, Type type, Reduction reduction, uint32_t root,
                       const CallOptions& options);
  Request gather_async(const void* in, void* out, size_t count, Type type, uint32_t root, const CallOptions& options);
  Request scatter_async(const void* in, void* out, size_t count, Type type, uint32_t root, const CallOptions& options);
  Request all_to_all_async(const void* in, void* out, size_t count, Type type, const CallOptions& options);
  Request all_to_allv_async(const void* in, std::span<const size_t> sent, void* out, std::span<const size_t> received,
                            Type type, const CallOptions& options);
  Request barrier_async(const CallOptions& options);
  Request send_async(const void* data, size_t count, Type type, uint32_t peer, const CallOptions& options);
  Request recv_async(void* data, size_t count, Type type, uint32_t peer, const CallOptions& options);

  Group split(int color, int key);
  Group subgroup(const std::vector<uint32_t>& ranks, const Exchange& exchange);
  Group shrink();
  Group rejoin();
  void abort(const std::string& reason);

  int progress_fd();
  std::vector<uint32_t> relays(uint32_t peer) const;
  std::string report() const;
  std::string explain(const std::string& operation, size_t count, Type type) const;

 private:
  friend class Request;
  struct State;
  explicit Group(std::unique_ptr<State> state);
  /// `ranks`: of this group.
  Group made_of(std::vector<uint32_t> ranks, uint16_t number, std::vector<bool> avoided);
  // null only when it was moved from
  std::unique_ptr<State> state_;
};

}  // namespace ringbolt::group

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ringbolt/join_options.h"
#include "ringbolt/ringbolt.h"
#include "ringbolt/status.h"
#include "ringbolt/types.h"

// Ringbolt for programs in C++: classes over the functions of ringbolt/ringbolt.h, defined in headers alone. So no type
// of the standard library crosses the border of libringbolt.so, and a program may be compiled by another compiler, with
// another standard library or other flags than the library was.
namespace ringbolt {

/// The version of the library that the program runs with: major * 10000 + minor * 100 + patch. RINGBOLT_VERSION is the
/// headers'.
inline uint32_t version() { return ringbolt_version(); }

/// Why no group came about, in words that say what is missing and what to do.
class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& text) : std::runtime_error(text), code_(code) {}
  /// An errno, as Status::code.
  int code() const { return code_; }

 private:
  int code_;
};

/// A call under way. Its buffers stay valid and untouched until it is done. Destroying the handle of a call that is not
/// done cancels it. Move-only; one thread at a time.
class Request {
 public:
  Request() = default;
  ~Request();
  Request(Request&& other) noexcept;
  Request& operator=(Request&& other) noexcept;

  /// Whether it has ended. Does not block.
  bool is_done() const;
  /// Blocks until it has ended, at the latest at its deadline, and says how.
  Status wait();
  /// Blocks until it has ended, or for so long (up to 20 ms longer): whether it has.
  bool wait_for(uint64_t timeout_ms);
  /// Gives it up, on all ranks: those that are not done get ECANCELED.
  void cancel();

 private:
  friend class Group;
  explicit Request(ringbolt_request* request) : request_(request) {}
  explicit Request(Status refused) : ended_(std::move(refused)) {}
  void give_back();

  ringbolt_request* request_ = nullptr;  // until it has been waited for
  std::optional<Status> ended_;          // how, from then on; nothing: it stands for no call
};

/// Ranks that work together over the cables between them. Any two can talk if there is any way between them.
///
/// Collectives are called by all ranks in the same order with the same sizes, types and roots; a rank that differs
/// makes the call fail on all with words that say how; so does one whose arguments make no sense. Counts are in
/// elements. Buffers need no alignment beyond their type's and no registration. Every call has a deadline. After a
/// failure that took a rank away, all further calls fail at once until shrink().
///
/// Thread-safe: several threads may have calls in flight, if they keep to one order on all ranks. Move-only: one that
/// was moved from may only be destroyed or assigned to.
class Group {
 public:
  /// Meets the other ranks, finds the cables, connects them. Blocks until all are there. Throws Error, a
  /// std::runtime_error, that says what is missing and what to do.
  static Group join(const JoinOptions& options = {});

  uint32_t rank() const { return ringbolt_rank(group_.get()); }
  uint32_t size() const { return ringbolt_size(group_.get()); }

  /// out[i] = in of rank 0 [i] op in of rank 1 [i] ..., on every rank. In place when out == in.
  /// Shapes: in, out: [count].
  Status all_reduce(const void* in, void* out, size_t count, Type type, Reduction reduction,
                    const CallOptions& options = {});
  /// Rank r gets the r-th part of the reduced vector. Shapes: in: [size, count]; out: [count]. In place when out is
  /// this rank's part of in.
  Status reduce_scatter(const void* in, void* out, size_t count, Type type, Reduction reduction,
                        const CallOptions& options = {});
  /// Shapes: in: [count]; out: [size, count]. In place when in is this rank's part of out.
  Status all_gather(const void* in, void* out, size_t count, Type type, const CallOptions& options = {});
  /// Likewise with counts[r] elements of rank r, one after the other. Shapes: in: [counts[rank]]; out: [sum of counts].
  Status all_gatherv(const void* in, void* out, const std::vector<size_t>& counts, Type type,
                     const CallOptions& options = {});
  /// Shape: data: [count], read at the root, written elsewhere.
  Status broadcast(void* data, size_t count, Type type, uint32_t root, const CallOptions& options = {});
  /// As all_reduce(), at the root alone; `out` may be null elsewhere.
  Status reduce(const void* in, void* out, size_t count, Type type, Reduction reduction, uint32_t root,
                const CallOptions& options = {});
  /// Shapes: in: [count]; out, at the root: [size, count].
  Status gather(const void* in, void* out, size_t count, Type type, uint32_t root, const CallOptions& options = {});
  /// Shapes: in, at the root: [size, count]; out: [count].
  Status scatter(const void* in, void* out, size_t count, Type type, uint32_t root, const CallOptions& options = {});
  /// Part s of rank r's input becomes part r of rank s's output. Shapes: in, out: [size, count]. Not in place.
  Status all_to_all(const void* in, void* out, size_t count, Type type, const CallOptions& options = {});
  /// Likewise with sent[s] elements to rank s and received[s] from it. The ranks compare their counts first, within the
  /// same deadline.
  Status all_to_allv(const void* in, const std::vector<size_t>& sent, void* out, const std::vector<size_t>& received,
                     Type type, const CallOptions& options = {});
  /// Returns when all ranks have called it.
  Status barrier(const CallOptions& options = {});

  /// To one rank, which must call recv() of as many elements. Messages between two ranks arrive in the order of their
  /// sending, apart from collectives. send() may return before the peer has called recv(). To itself: one of the two
  /// asynchronously, since each waits for the other.
  Status send(const void* data, size_t count, Type type, uint32_t peer, const CallOptions& options = {});
  Status recv(void* data, size_t count, Type type, uint32_t peer, const CallOptions& options = {});

  // The same, begun and not waited for.
  Request all_reduce_async(const void* in, void* out, size_t count, Type type, Reduction reduction,
                           const CallOptions& options = {});
  Request reduce_scatter_async(const void* in, void* out, size_t count, Type type, Reduction reduction,
                               const CallOptions& options = {});
  Request all_gather_async(const void* in, void* out, size_t count, Type type, const CallOptions& options = {});
  Request all_gatherv_async(const void* in, void* out, const std::vector<size_t>& counts, Type type,
                            const CallOptions& options = {});
  Request broadcast_async(void* data, size_t count, Type type, uint32_t root, const CallOptions& options = {});
  Request reduce_async(const void* in, void* out, size_t count, Type type, Reduction reduction, uint32_t root,
                       const CallOptions& options = {});
  Request gather_async(const void* in, void* out, size_t count, Type type, uint32_t root,
                       const CallOptions& options = {});
  Request scatter_async(const void* in, void* out, size_t count, Type type, uint32_t root,
                        const CallOptions& options = {});
  Request all_to_all_async(const void* in, void* out, size_t count, Type type, const CallOptions& options = {});
  Request all_to_allv_async(const void* in, const std::vector<size_t>& sent, void* out,
                            const std::vector<size_t>& received, Type type, const CallOptions& options = {});
  Request barrier_async(const CallOptions& options = {});
  Request send_async(const void* data, size_t count, Type type, uint32_t peer, const CallOptions& options = {});
  Request recv_async(void* data, size_t count, Type type, uint32_t peer, const CallOptions& options = {});

  /// A descriptor for programs with an event loop: readable when a call that was begun may have ended, or the group has
  /// broken. Read 8 bytes of it, and only then ask all requests is_done(). It is the group's, and goes with it. See
  /// ringbolt_progress_fd(). Throws Error.
  int progress_fd();

  /// Ranks of the same color become a group, in the order of (key, rank); of a negative color, none: a group of size 0.
  /// A collective call. Groups share cables and memory. The new one's schedules are made for the cables that are up
  /// now. Throws Error if it fails.
  Group split(int color, int key);
  /// The group of these ranks of this one, in that order. They alone call it; the others pass on what these send each
  /// other, as ever. `exchange` gathers bytes among them, in that order: JoinOptions::exchange says how. It is called
  /// several times, before this returns. Throws Error if it fails, and what `exchange` throws.
  Group subgroup(const std::vector<uint32_t>& ranks, const Exchange& exchange);
  /// The group of the ranks that are still there, in the same order, once those that are gone have been agreed upon. A
  /// collective call of the survivors. Throws Error if they can't agree.
  Group shrink();
  /// All ranks meet anew, as for join(): those that are left call this, those that have been started again
  /// call join(). Blocks until all are there. Gives up this group and all others of the same ranks: their calls fail,
  /// and should be destroyed first, since they hold cables; no other thread may begin one meanwhile. Throws Error as
  /// join() does; then this group has no ranks, and rejoin() may be tried again. Not of a group of size 0 that came of
  /// split().
  Group rejoin();
  /// Makes every call of this group fail on all ranks, those under way and later ones, with these words.
  void abort(const std::string& reason);

  /// The ranks that pass on what this one sends to `peer`, in order, as things are now: none if a cable joins the two.
  /// Numbers are those of the group that join() made. Throws Error if no cables lead there any more,
  /// std::out_of_range if there is no such rank.
  std::vector<uint32_t> relays(uint32_t peer) const;
  /// The rank's device, cable and path to each other one, and figures since the beginning, for people.
  std::string report() const;
  /// Which algorithm a call would take, and what else would do, for people.
  std::string explain(const std::string& operation, size_t count, Type type) const;

 private:
  struct Leave {
    void operator()(ringbolt_group* group) const { ringbolt_leave(group); }
  };
  struct ProgramExchange;
  static int exchange(void* context, const void* mine, void* all, size_t length_bytes);
  Group(ringbolt_group* group, std::shared_ptr<ProgramExchange> exchange)
      : exchange_(std::move(exchange)), group_(group) {}
  Group made(int code, ringbolt_group* group) const;
  Status run(const ringbolt_call& call) const;
  Request start(const ringbolt_call& call) const;

  std::shared_ptr<ProgramExchange> exchange_;  // what rejoin() calls
  std::unique_ptr<ringbolt_group, Leave> group_;
};

}  // namespace ringbolt

#include "ringbolt/group_inline.h"

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ringbolt/export.h"
#include "ringbolt/status.h"

namespace ringbolt {

/// What a buffer's elements are.
enum class Type : uint8_t {
  boolean,  ///< a byte; 0 is false, all else true
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  complex64,  ///< two float32
};

/// How elements of different ranks become one.
enum class Reduction : uint8_t {
  sum,   ///< of integers modulo 2^bits; of booleans: or
  prod,  ///< of booleans: and
  max,   ///< any NaN makes the result NaN; not of complex numbers
  min,
  avg,  ///< the sum over the number of ranks; of integers, the sum modulo 2^bits, rounded towards zero; not of booleans
};

/// What a call may be asked for besides its work.
struct CallOptions {
  /// The call ends by then, one way or the other. 0: the group's own (GroupOptions::timeout_ms).
  uint64_t timeout_ms = 0;
  /// Sums and products of floating-point numbers are reduced in the order of ranks, so that every rank, run, cabling
  /// and algorithm gives the same bits. Off: whatever is fastest.
  bool is_reproducible = true;
  /// "direct", "ring", "trees", ... (docs/algorithms.md); empty: the one that should be fastest. All ranks must ask for
  /// the same.
  std::string algorithm = {};
};

struct GroupOptions {
  /// Variables that stand for the process's environment: ranks, where to meet (docs/environment.md). Empty: the
  /// process's.
  std::map<std::string, std::string> environment = {};
  /// A call that takes longer has failed, if it says nothing of its own.
  uint64_t timeout_ms = 300'000;
  /// Which verbs library: "auto", "system", "soft" or a path. Empty: RINGBOLT_VERBS, else "auto".
  std::string verbs = {};
  /// CRC-32C of every chunk that crosses a cable. Off: RINGBOLT_CRC=off. Also of what is read in memory that two ranks
  /// share: RINGBOLT_CRC=every.
  bool has_crc = true;
  /// Cables are measured when ranks meet (20 ms at most), and schedules chosen by that. Off: RINGBOLT_MEASURE=off; then
  /// all cables count as alike but for the rates that their devices name.
  bool measures_cables = true;
};

/// A call under way. Its buffers stay valid and untouched until it is done. Destroying the handle of a call that is not
/// done cancels it. Move-only; one thread at a time.
class RINGBOLT_API Request {
 public:
  Request();
  ~Request();
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;

  /// Whether it has ended. Does not block.
  bool is_done() const;
  /// Blocks until it has ended, at the latest at its deadline, and says how.
  Status wait();
  /// Gives it up, on all ranks: those that are not done get ECANCELED.
  void cancel();

 private:
  friend class Group;
  friend struct GroupAccess;
  struct State;
  std::unique_ptr<State> state_;
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
class RINGBOLT_API Group {
 public:
  /// Meets the other ranks, finds the cables, connects them. Blocks until all are there. Throws std::runtime_error that
  /// says what is missing and what to do.
  static Group join(const GroupOptions& options = {});
  ~Group();
  Group(Group&&) noexcept;
  Group& operator=(Group&&) noexcept;

  uint32_t rank() const;
  uint32_t size() const;

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

  /// Ranks of the same color become a group, in the order of (key, rank); of a negative color, none: a group of size 0.
  /// A collective call. Groups share cables and memory. The new one's schedules are made for the cables that are up
  /// now. Throws std::runtime_error if it fails.
  Group split(int color, int key);
  /// The group of the ranks that are still there, in the same order, once those that are gone have been agreed upon. A
  /// collective call of the survivors. Throws std::runtime_error if they can't agree.
  Group shrink();
  /// All ranks meet anew, as the environment says: those that are left call this, those that have been started again
  /// call join(). Blocks until all are there. Gives up this group and all others of the same ranks: their calls fail,
  /// and should be destroyed first, since they hold cables; no other thread may begin one meanwhile. Throws
  /// std::runtime_error as join() does; then this group has no ranks, and rejoin() may be tried again.
  Group rejoin();
  /// Makes every call of this group fail on all ranks, those under way and later ones, with these words.
  void abort(const std::string& reason);

  /// The ranks that pass on what this one sends to `peer`, in order, as things are now: none if a cable joins the two.
  /// Numbers are those of the group that join() made. Throws std::runtime_error if no cables lead there any more,
  /// std::out_of_range if there is no such rank.
  std::vector<uint32_t> relays(uint32_t peer) const;
  /// The rank's device, cable and path to each other one, and figures since the beginning, for people.
  std::string report() const;
  /// Which algorithm a call would take, and what else would do, for people.
  std::string explain(const std::string& operation, size_t count, Type type) const;

 private:
  friend class Request;
  struct State;
  explicit Group(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ringbolt

#pragma once

#include <cstdint>
#include <vector>

namespace ringbolt::collective {

/// What a call does. send and recv are no collectives and have no schedule.
enum class Operation : uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,  ///< also all_gatherv: shares of different sizes
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,  ///< also all_to_allv
  barrier,
};

/// A call without its memory: all that a schedule depends on, besides the graph. Equal on all ranks.
///
/// Layouts, in bytes (share(r) = shares[r]):
///   all_reduce       input [total], output [total]                   total = share(0), the only one
///   reduce_scatter   input [sum of shares], output [share(rank)]     rank r gets the r-th piece
///   all_gather       input [share(rank)], output [sum of shares]
///   broadcast        input [total] at the root, output [total]       at the root, output may be input
///   reduce           input [total], output [total] at the root
///   gather           input [share(rank)], output [sum of shares] at the root
///   scatter          input [sum of shares] at the root, output [share(rank)]
///   all_to_all       shares is [n_ranks * n_ranks]: share(r * n + s) goes from r to s; input of r: its row, one after
///                    the other; output of r: its column
///   barrier          nothing
struct Problem {
  Operation operation = Operation::all_reduce;
  uint32_t n_ranks = 1;
  uint32_t root = 0;             ///< of broadcast, reduce, gather, scatter
  std::vector<uint64_t> shares;  ///< bytes, whole elements; see above
  uint32_t element_bytes = 1;
  /// The result may depend on the order in which elements are reduced (floating-point sums and products), and must not:
  /// only rank-ordered schedules will do.
  bool needs_rank_order = false;
  /// Sums that travel are rounded to the element's type, and inputs are not (16-bit floating-point numbers): then a
  /// schedule that passes partial sums on keeps no rank order.
  bool rounds_partials = false;
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// What the executor can do.
struct Limits {
  /// What a large slot of the engine holds (engine::kLargePayloadBytes).
  uint32_t most_chunk_bytes = 65536;
};

}  // namespace ringbolt::collective

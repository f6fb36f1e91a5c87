#pragma once

#include <cstdint>
#include <string>

#include <tl/expected.hpp>

#include "collective/problem.h"
#include "collective/schedule.h"
#include "fabric/graph.h"

namespace ringbolt::collective {

/// What a schedule that passed is like.
struct CheckedSchedule {
  uint64_t n_chunks = 0;    ///< that steps have worked on
  uint32_t most_steps = 0;  ///< of a rank
  uint32_t most_transfers = 0;  ///< from a rank to one other
  uint64_t transfer_bytes = 0;  ///< that transfers carried
  friend bool operator==(const CheckedSchedule&, const CheckedSchedule&) = default;
};

/// Proves a schedule by running it on symbols: each byte range stands for the contributions (rank, offset in its input)
/// that were added up, in order: a list up to 32 ranks, a fingerprint of more (see Origins).
///
/// * Transfers are matched one to one, with the same bytes and chunks, numbered from 0 for each pair of ranks; `via`
/// follows
///   cables; chunks are whole elements and no longer than the limit; each rank of several has a transfer.
/// * It comes to its end with one chunk in every transfer, whatever the order in which steps go.
/// * Each byte of each output has each contribution it should, once, from the right place; in the order of ranks and
///   from the left, one by one, if it says so; and the last touch, once, if the operation adds up.
/// * Of any two accesses to the same bytes of a rank, one of which writes, one happens before the other by what the
///   schedule says (Lamport 1978). So the run that was looked at stands for all. Of more than 64 ranks, the root
///   and some 15 more are looked at for this, spread over all.
///
/// It is run a second time with input and output in one place where that is allowed: all_reduce, reduce, broadcast; one
/// rank's piece within the whole for all_gather, reduce_scatter, gather and scatter.
///
/// Says what is wrong, with rank, step and offset. Takes a microsecond or two for a chunk of a step. Pure. Thread-safe.
tl::expected<CheckedSchedule, std::string> check(const Schedule& schedule, const Problem& problem,
                                                 const fabric::Graph& graph, const Limits& limits);

}  // namespace ringbolt::collective

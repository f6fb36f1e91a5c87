#pragma once

#include <cstdint>
#include <vector>

#include "collective/problem.h"

namespace ringbolt::collective {

/// Bytes [offset, offset + bytes) of a buffer.
struct Piece {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
};

// All are pure and thread-safe.

/// "all_reduce", ...
const char* operation_text(Operation operation);
/// Whether it adds up: all_reduce, reduce_scatter, reduce.
bool reduces(Operation operation);
/// Whether a root matters: broadcast, reduce, gather, scatter.
bool has_root(Operation operation);

/// All shares together.
/// Shares are checked before (group/arguments.h), so that the sum does not wrap.
uint64_t total_bytes(const Problem& problem);
uint64_t input_bytes(const Problem& problem, uint32_t rank);
uint64_t output_bytes(const Problem& problem, uint32_t rank);

/// Where the share of every rank lies in a buffer of all shares, one after the other. Not of all_to_all, barrier and
/// operations with one share. Shape: [n_ranks].
std::vector<Piece> pieces_of(const Problem& problem);
/// all_to_all: what `rank` sends, by destination, in its input. Shape: [n_ranks].
std::vector<Piece> row_of(const Problem& problem, uint32_t rank);
/// all_to_all: what `rank` gets, by source, in its output. Shape: [n_ranks].
std::vector<Piece> column_of(const Problem& problem, uint32_t rank);

/// Cuts `whole` into as many pieces as there are weights, of whole elements, as near to the weights as can be; some may
/// be empty. The weights' sum must be above 0.
std::vector<Piece> cut(const Piece& whole, uint32_t element_bytes, const std::vector<double>& weights);
/// Equal pieces; where that does not come out even, the first ones have an element more.
std::vector<Piece> cut_evenly(const Piece& whole, uint32_t element_bytes, uint64_t n_pieces);

}  // namespace ringbolt::collective

#pragma once

#include <cstddef>

namespace ringbolt::nccl {

/// How NCCL is to choose among its algorithms.
enum class Tuning {
  as_it_is,   ///< by its own costs
  ring_only,  ///< without what sends between machines that no cable joins
};

/// What to do about a communicator over `nodes` machines. `knob` is RINGBOLT_NCCL_TUNER, null or empty if unset: `off`
/// and `ring` say so themselves; else, and at any other word, ring_only from four machines on, since with two ports
/// each no more than three are all joined. Takes nothing that could differ between ranks, but for the knob: set it
/// alike on all, or they choose different algorithms and hang. Thread-safe, pure.
Tuning choose_tuning(const char* knob, size_t nodes) noexcept;

/// Whether `knob` is a word that choose_tuning() knows, or unset.
bool is_tuning_known(const char* knob) noexcept;

/// Makes what is not for sparse graphs unavailable (-1.0): Tree, both CollNets, NVLSTree and PAT.
/// Shapes: table: [algorithms][protocols] of us, row after row, of NCCL's numbering; more algorithms than we know keep
/// their costs, fewer are no error. A table that would be left without any usable entry stays as it is: slow beats
/// failed. No entry becomes usable by it. Thread-safe for different tables.
void forbid_sparse_unfit(float* table, int algorithms, int protocols) noexcept;

}  // namespace ringbolt::nccl

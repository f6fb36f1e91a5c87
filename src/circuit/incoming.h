#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "circuit/receive_circuit.h"
#include "circuit/surroundings.h"

namespace ringbolt::circuit {

/// A receive circuit from the first word of its sender to its end. Of the endpoint's thread alone, but for close().
/// Shared by the endpoint, the listener that has not handed it over, and the program.
class Incoming {
 public:
  /// Throws base::Error.
  Incoming(const Open& open, MemberId sender, Surroundings& in);

  CircuitId id() const { return circuit_->id(); }
  MemberId peer() const { return circuit_->peer(); }
  uint64_t listener() const { return listener_; }
  /// What its sender is told of that (Opened).
  static uint64_t least_written_bytes(const Open& open, const Surroundings& in);
  const std::shared_ptr<ReceiveCircuit>& circuit() const { return circuit_; }
  /// Whether its listener has been told that it is open.
  bool is_handed_over = false;

  /// The program has no more use for it: its memory is not written to any more once this returns. Thread-safe. Then
  /// Endpoint::wake(): the rest is done in the endpoint's thread.
  void close();

  /// Makes the rail, connects it (which may block, see Rail::connect()) and answers; or says along the path that it
  /// can't be had.
  void hear(const RailOpen& open, Surroundings& in);
  void hear(const RailDown& down);
  void hear(const Close& close, Surroundings& in);
  void hear_gone(const std::string& name, const std::string& why, const Surroundings& in);

  /// See Outgoing::step().
  bool step(bool is_tick, Surroundings& in);
  bool is_restless() const { return is_closing_ || !circuit_->is_open(); }

 private:
  void wind_up(Surroundings& in);

  const uint64_t listener_;
  const bool is_direct_;  ///< long messages are written to its memory
  std::shared_ptr<ReceiveCircuit> circuit_;
  bool has_told_failure_ = false;
  std::atomic<bool> is_closing_ = false;
};

}  // namespace ringbolt::circuit

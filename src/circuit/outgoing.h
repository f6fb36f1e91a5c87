#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "circuit/send_circuit.h"
#include "circuit/surroundings.h"

namespace ringbolt::circuit {

/// A send circuit from the call that asks for it to its end: finds the peer, asks its listener, makes rails over all
/// paths that there are, and makes others as cables come and go. Of the endpoint's thread alone, but for what is said
/// to be thread-safe. Shared by the endpoint, its map of connections that are being made, and the program.
class Outgoing {
 public:
  Outgoing(CircuitId id, MemberId peer, uint64_t listener, bool has_checksums)
      : id_(id), peer_(peer), listener_(listener), has_checksums_(has_checksums) {}

  CircuitId id() const { return id_; }
  MemberId peer() const { return peer_; }

  /// Null until there is a rail. Thread-safe. The acquire sees circuit_, which is written before and never again.
  std::shared_ptr<SendCircuit> ready() const { return is_ready_.load(std::memory_order_acquire) ? circuit_ : nullptr; }
  /// Whether there will never be one; failure_text() says why. Thread-safe.
  bool is_refused() const { return is_refused_.load(std::memory_order_acquire); }
  /// Only after is_refused(), which acquires it; then it never changes.
  const std::string& failure_text() const { return failure_text_; }
  /// The program has no more use for it. What it has sent is still delivered. Thread-safe. Then Endpoint::wake().
  /// What is not taken within two seconds is given up.
  void close() { is_closing_ = true; }

  /// Now: base::now_ns(), as in all that follow. Rails are planned at the next step().
  void hear(const Opened& opened, uint64_t now_ns, Surroundings& in);
  void hear(const Refused& refused);
  void hear(MemberId from, const RailReady& ready, Surroundings& in);
  void hear(const RailDown& down, uint64_t now_ns, Surroundings& in);
  void hear(const Close& close, Surroundings& in);
  void hear_gone(MemberId member, const std::string& name, const std::string& why, Surroundings& in);

  /// Goes on. `is_tick`: also what the program would move if it asked. Whether it is over, and to be forgotten. May
  /// block where a device does as a rail is made or connected.
  bool step(uint64_t now_ns, bool is_tick, Surroundings& in);
  /// Something is to be done soon: it is being made, or wound up.
  bool is_restless() const { return !is_ready_ || is_closing_ || !making_.empty(); }

 private:
  /// A rail whose other end has not answered yet.
  // Nobody else has its rail: it needs no lock.
  struct Making {
    std::unique_ptr<Rail> rail;
    Path path;
    uint32_t rate_mbps = 0;
    uint64_t deadline_ns = 0;
    bool may_lose = false;  ///< one of its hops is UC
  };

  void call(uint64_t now_ns, Surroundings& in);
  void plan(uint64_t now_ns, Surroundings& in);
  void make_rail(const PlannedPath& planned, uint64_t now_ns, Surroundings& in);
  std::string text_of_way(const Making& made, const Surroundings& in) const;
  void note_refused(const std::string& why, uint64_t now_ns, Surroundings& in);
  void make_circuit(size_t n_paths, uint16_t port, Surroundings& in);
  void give_up_making(uint16_t number, const std::string& why, uint64_t now_ns, Surroundings& in);
  std::string text_of_ways(const Surroundings& in) const;
  void fail(FailureKind kind, const std::string& why, Surroundings& in);
  void end_rails(const std::string& why, Surroundings& in);
  void wind_up(Surroundings& in);
  bool is_over(uint64_t now_ns);

  const CircuitId id_;
  const MemberId peer_;
  const uint64_t listener_;
  const bool has_checksums_;
  bool has_asked_ = false;            ///< an Open has been sent
  bool is_opened_ = false;            ///< the peer knows of it
  uint64_t least_written_bytes_ = 0;  ///< both ends know that; 0: all goes by frames
  uint64_t begun_ns_ = 0;
  uint64_t next_call_ns_ = 0;
  uint64_t pathless_ns_ = 0;  ///< since when there has been no rail; 0: there is one
  bool has_warned_ = false;
  uint64_t refused_ns_ = 0;       ///< since when rails have been refused, without one that came about; 0: none has
  uint32_t planned_version_ = 0;  ///< of the network
  uint64_t next_plan_ns_ = 0;
  uint16_t next_rail_ = 0;
  std::map<uint16_t, Making> making_;
  uint64_t closing_ns_ = 0;
  // Written before the release of is_refused_.
  std::string failure_text_;
  // Made with the first path; then never changed. Its rails are added and taken out under its lock.
  std::shared_ptr<SendCircuit> circuit_;
  std::atomic<bool> is_ready_ = false;
  std::atomic<bool> is_refused_ = false;
  std::atomic<bool> is_closing_ = false;
};

}  // namespace ringbolt::circuit

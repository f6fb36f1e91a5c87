#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/side_channel.h"
#include "fabric/liveness.h"
#include "mesh/bring_up.h"
#include "mesh/cable_states.h"
#include "mesh/mender.h"
#include "mesh/rank_states.h"
#include "ringbolt/status.h"

namespace ringbolt::mesh {

/// Who is alive, as one rank of a mesh sees it: sends heartbeats through its cables and the side channel, hears those
/// of others and their news of cables, and carries out what follows: other paths, cables that are connected anew, ranks
/// that are given up. Under the mesh's lock. Not thread-safe. Times are base::now_ns(), and never go back; nothing here
/// looks at the clock or blocks, but for wait_for_mending(), which does both. In a mesh of one rank nobody is watched.
class Watch : private Mender::Surroundings {
 public:
  /// What it needs besides cables, and whom it tells. Called from within its functions: only what is const may be
  /// called back.
  class Surroundings {
   public:
    virtual ~Surroundings() = default;
    /// Through the side channel, to a rank or bootstrap::kEveryone; false: there is no way. `is_latest_only`: as
    /// bootstrap::SideChannel::send() has it.
    virtual bool send(uint32_t to, uint16_t kind, std::span<const std::byte> bytes, bool is_latest_only) = 0;
    /// Bit r: rank r's host has acknowledged something within so long.
    virtual uint64_t hosts_answering(uint32_t within_ms) = 0;
    /// As mesh::Client has these three.
    virtual void on_message(uint32_t from, uint16_t kind, std::span<const std::byte> bytes) = 0;
    virtual void on_rank_failed(uint32_t rank, const Status& status) = 0;
    virtual void on_rank_given_up(uint32_t rank, bool is_certain) = 0;
  };

  /// `made` and `around` must outlive it. `incarnation`: of this process in heartbeats; random, never 0. Takes no part
  /// in the engine: whoever is its receiver hands on what this wants to hear.
  Watch(Surroundings& around, const BroughtUp& made, uint32_t rank, uint32_t n_ranks,
        const fabric::LivenessKnobs& knobs, uint64_t incarnation, uint64_t now_ns);

  // watch.cpp: what is heard and told
  /// Does what is due. To be called at next_ns(), earlier if something has been heard; sets that anew.
  void progress(uint64_t now_ns);
  uint64_t next_ns() const { return next_ns_; }
  /// Something may have come: progress() is due at once.
  void look_soon() { next_ns_ = 0; }
  /// What the side channel has brought. A message's bytes are a peer's, and are parsed with care.
  void hear(const bootstrap::Event& event, uint64_t now_ns);
  /// What came through a local cable. Any bytes are safe, as of the next one.
  void hear_beat(uint32_t cable, std::span<const std::byte> bytes, uint64_t now_ns) { hear_beat(bytes, cable, now_ns); }
  /// Mender::hear(), of a word that came over cables.
  void hear_mending(uint32_t from, std::span<const std::byte> bytes);

  // failing.cpp: what follows from it
  /// A local cable has failed, and is dead to the engine already: what follows is for mending, for liveness and for the
  /// other ranks.
  void on_cable_failed(uint32_t cable, uint64_t now_ns);

  const RankStates& ranks() const { return ranks_; }
  const CableStates& cables() const { return cables_; }
  /// Mender::wait_for_each().
  void wait_for_mending(uint64_t time_ns) { mender_.wait_for_each(time_ns); }

 private:
  // Mender::Surroundings
  bool send_mending(uint32_t to, std::span<const std::byte> word) override;
  void on_mended(uint32_t cable, uint64_t now_ns) override;

  engine::Engine& engine() { return made_.station->engine(); }
  uint32_t n_local_cables() const { return made_.station ? made_.station->n_cables() : 0; }
  void hurry() { next_beat_ns_ = next_ns_ = 0; }
  void beat(uint64_t now_ns);
  std::vector<std::byte> beat_bytes(uint64_t now_ns);
  void hear_beat(std::span<const std::byte> bytes, std::optional<uint32_t> cable, uint64_t now_ns);
  bool agrees_that_works(uint32_t fabric_cable, uint64_t now_ns);
  void hear_cables(uint64_t now_ns);
  void hear_ports(uint64_t now_ns);
  void hear_hosts(uint64_t now_ns);
  void hear_message(const bootstrap::Event& event, uint64_t now_ns);
  void hear_end(const bootstrap::Event& event, uint64_t now_ns);

  void apply(const fabric::LivenessChange& change);
  void change_cable(uint32_t fabric_cable, bool is_up, const std::string& why);
  void set_cable(uint32_t fabric_cable, bool is_up, const std::string& why);
  std::string cables_of(uint32_t rank) const;
  bool leads_to_failed(uint32_t fabric_cable) const;
  void fail_rank(uint32_t rank, const Status& status, bool is_certain);
  void fail_unreachable();

  // not owned: the mesh and what it has brought up
  Surroundings& around_;
  const BroughtUp& made_;
  uint32_t rank_;
  uint32_t n_ranks_;
  std::optional<fabric::Liveness> liveness_;  // of more than one rank, and no more than it can watch
  fabric::LivenessKnobs knobs_;
  RankStates ranks_;
  CableStates cables_;
  Mender mender_;
  std::vector<uint64_t> received_bytes_;  // [local cable]: when last looked at
  std::vector<bool> has_lost_port_;       // [local cable]: its port says so, and has not been seen active since
  uint64_t incarnation_;
  uint64_t turn_ = 0;
  uint64_t next_beat_ns_ = 0;  // through the side channel
  uint64_t next_ns_ = 0;
  uint64_t next_port_look_ns_ = 0;
};

}  // namespace ringbolt::mesh

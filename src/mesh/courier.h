#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "mesh/client.h"

namespace ringbolt::mesh {

/// A client of the mesh: packets between any two ranks, in the order of their sending, for as long as both live, which
/// is what an agent of the overlay device carries. Many packets share a chunk of the engine, which relays it and sends
/// it again until it is there. A rank that is gone takes nothing any more; the others are not held up by it.
/// docs/formats/overlay.md.
///
/// Used under the lock of the mesh. Nothing blocks.
class Courier final : public TurnClient {
 public:
  /// With its length before it a packet must fit a chunk, of engine::kLargePayloadBytes.
  static constexpr uint32_t kMostPacketBytes = 32 * 1024;
  /// Chunks to one rank that it has not taken yet.
  /// Of 64 KiB each, so that one slow rank holds 1 MiB of the engine's memory at most. Both ends count by the same
  /// number: it is part of the format.
  static constexpr uint32_t kWindowChunks = 16;
  /// What waits for one rank beyond that; more is dropped.
  static constexpr size_t kMostWaitingBytes = size_t{64} << 20U;

  /// Who takes what arrives. Called under the lock.
  class Sink {
   public:
    virtual ~Sink() = default;
    /// `packet` until it returns.
    virtual void on_packet(uint32_t source, std::span<const std::byte> packet) = 0;
    /// No more for now.
    virtual void on_end_of_packets() = 0;
  };

  struct Counts {
    uint64_t packets_out = 0;
    uint64_t bytes_out = 0;
    uint64_t packets_in = 0;
    uint64_t bytes_in = 0;
    uint64_t dropped_gone = 0;  ///< their rank is gone
    uint64_t dropped_full = 0;  ///< too much waits for it already
    uint64_t malformed = 0;     ///< chunks whose packets don't add up
  };

  /// `engine` and `sink` must outlive it.
  Courier(engine::Engine& engine, uint32_t rank, uint32_t n_ranks, Sink& sink);

  /// A packet of up to kMostPacketBytes to another rank; flush() sends it. False: it is dropped.
  /// `rank` is another one of the mesh, and `packet` is copied. Throws std::bad_alloc, and the packet counts as not
  /// sent.
  bool send(uint32_t rank, std::span<const std::byte> packet);
  /// Sends as far as windows and the engine's memory allow; what remains goes with what comes back.
  /// Also called at the end of each turn, when credits and memory have come back.
  void flush();

  /// Packets to that rank are dropped from now on.
  /// Frees what waits for it. For good: nothing takes it back.
  void give_up(uint32_t rank);
  /// `rank`: below n_ranks, as in all functions here.
  bool is_gone(uint32_t rank) const { return peers_[rank].is_gone; }

  // mesh::TurnClient
  void on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) override;
  void on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) override;
  void on_rank_failed(uint32_t rank, const Status&) override { give_up(rank); }
  bool advance(uint64_t) override { return false; }
  bool is_busy() const override { return false; }  // its packets are in the engine's hands
  void end_turn() override;

  /// The reference is good as long as this, what it says under the lock alone.
  const Counts& counts() const { return counts_; }

 private:
  struct Peer {
    std::deque<std::vector<std::byte>> waiting;  // chunks; the last one may still grow
    size_t waiting_bytes = 0;
    // All numbers of chunks wrap at 2^32; only differences of those within a window are compared.
    uint32_t next_out = 0;     // chunk number
    uint32_t taken_by_it = 0;  // of these, as far as it has said
    // By number, copied: chunks of several paths overtake each other. At most kWindowChunks - 1 of them.
    std::map<uint32_t, std::vector<std::byte>> early;
    uint32_t next_in = 0;
    uint32_t told_taken = 0;
    bool is_gone = false;
  };

  void flush(uint32_t rank);
  void hand_over(uint32_t source, std::span<const std::byte> chunk);
  void tell_taken(uint32_t rank);

  // not owned: the mesh's
  engine::Engine& engine_;
  uint32_t rank_;
  Sink& sink_;
  std::vector<Peer> peers_;  // [rank]
  bool has_delivered_ = false;
  Counts counts_;
};

}  // namespace ringbolt::mesh

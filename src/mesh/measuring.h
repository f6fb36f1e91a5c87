#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "fabric/cost_model.h"
#include "fabric/graph.h"
#include "mesh/client.h"

namespace ringbolt::mesh {

/// What was measured between two neighbours, over all cables between them; 0: nothing.
struct LinkFigures {
  uint32_t a = 0;  ///< the lower rank
  uint32_t b = 0;
  uint64_t latency_ns = 0;    ///< half the shortest round trip of a word
  uint64_t bytes_per_ms = 0;  ///< one way, chunk by chunk
  friend bool operator==(const LinkFigures&, const LinkFigures&) = default;
};

/// One rank's part in measuring all cables at once, before there are groups: words go back and forth between
/// neighbours, then a few chunks at a time. Drives the engine from one thread, as its receiver. Not thread-safe.
/// Owns nothing of the engine, which must outlive it, and gets another receiver before it progresses again.
class Measuring : public engine::Receiver {
 public:
  static constexpr uint32_t kPings = 8;
  static constexpr uint32_t kBursts = 3;
  /// The group's number in the headers of its chunks: whoever meets a late one drops it.
  static constexpr uint16_t kGroup = kMeasuringChannel;
  /// The first byte of its words: none that a group knows (word.h).
  static constexpr auto kWordKind = std::byte{0xff};

  /// The engine's cables are connected at both ends. `neighbours`: each once.
  Measuring(engine::Engine& engine, uint32_t rank, const std::vector<uint32_t>& neighbours);

  /// Begins: sends the first words.
  /// Once.
  void start();
  /// Moves what can be moved; whether anything was.
  /// `now_ns`: of base::now_ns(). Never blocks.
  bool progress(uint64_t now_ns);
  /// Everything is measured, and no neighbour needs answers any more.
  bool is_done() const;
  /// What this rank has measured so far, by the order of `neighbours`.
  /// Unfinished ones are in it with what is known of them, 0 for the rest.
  std::vector<LinkFigures> figures() const;

  // engine::Receiver
  void on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) override;
  void on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) override;
  void on_beat(uint32_t, std::span<const std::byte>) override {}
  void on_cable_failed(uint32_t) override {}  // the mesh looks at all of them when it begins

 private:
  enum class Say : uint8_t { ping, pong, got, done };
  struct Peer {
    uint32_t rank = 0;
    uint64_t begin_ns = 0;  // of the ping or the burst under way
    uint64_t least_round_ns = UINT64_MAX;
    uint64_t bytes_per_ms = 0;
    uint32_t n_pongs = 0;
    uint32_t n_bursts = 0;    // that have been received whole
    uint32_t n_to_send = 0;   // chunks of the burst under way that wait for a slot
    uint32_t n_received = 0;  // of the peer's burst
    bool is_done = false;     // this side
    bool is_peer_done = false;
  };
  Peer* find(uint32_t rank);
  void say(const Peer& peer, Say what);
  void begin_burst(Peer& peer);
  void send_chunks(Peer& peer);
  void hear_pong(Peer& peer);
  void hear_got(Peer& peer);

  engine::Engine& engine_;
  uint32_t rank_;
  std::vector<Peer> peers_;
};

/// What all ranks have measured, as one list, ascending: of the two ends of a link the shorter latency and the mean of
/// the rates. Every rank makes the same of the same.
std::vector<LinkFigures> merged(const std::vector<std::vector<LinkFigures>>& of_ranks);

/// What follows for schedules.
struct MeasuredModel {
  fabric::CostModel model;        ///< the nominal one where nothing was measured
  uint32_t n_links = 0;           ///< that were measured
  std::vector<uint32_t> thinner;  ///< [cable of the graph]: what its capacity is to be divided by, 1 for most
};

/// A link that is this many times slower than others are, for their nominal rates, counts as slower.
inline constexpr uint64_t kOddFactor = 4;

/// The model is that of the median link, coarsely: what differs by a third from run to run must not make ranks choose
/// otherwise. `graph` has the nominal capacities. Integers only, so that all machines come to the same. Pure.
MeasuredModel model_of(const std::vector<LinkFigures>& links, const fabric::Graph& graph);

}  // namespace ringbolt::mesh

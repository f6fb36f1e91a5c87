#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "link/overlay.h"
#include "link/stream_endpoint.h"
#include "mesh/courier.h"

namespace ringbolt::tools::agent {

/// The node's end of ringbolt0: the programs of this node that have the device open, each at a stream of its own, and
/// their packets, which go to the agents of other nodes and come from there. docs/formats/overlay.md.
///
/// Used under the lock of the mesh, but for descriptor(). Nothing blocks.
/// Owns the listening socket, its file and the programs' streams.
class LocalPorts final : public mesh::Courier::Sink {
 public:
  /// What waits for a program that takes nothing in just now: then packets for it are dropped, as at any full port.
  static constexpr size_t kMostWaitingBytes = size_t{64} << 20U;
  /// A program may tell others of its queue pair before the agent has heard of the program: so long, and so much of
  /// what nobody takes is kept.
  static constexpr uint64_t kEarlyNs = 2'000'000'000;
  static constexpr size_t kMostEarlyBytes = size_t{16} << 20U;

  struct Counts {
    uint64_t dropped_nobody = 0;   ///< for queue pairs of no program here
    uint64_t dropped_full = 0;     ///< for programs that take nothing in
    uint64_t dropped_strange = 0;  ///< to nodes that there are not, or no packets at all
    uint64_t dropped_away = 0;     ///< to nodes that are not in this agent's meeting
  };

  /// Waits for programs at the UNIX socket `path`, where a dead agent may have left one. Throws base::Error.
  LocalPorts(std::string path, uint32_t node, uint32_t n_nodes);
  ~LocalPorts() override;

  /// Where packets to other nodes go, the places of which in the ascending list `nodes` are the ranks of the courier;
  /// null: nowhere.
  /// Not owned: null before it goes.
  void set_courier(mesh::Courier* courier, std::vector<uint32_t> nodes) {
    courier_ = courier;
    nodes_ = std::move(nodes);
  }
  /// Readable when serve() has something to do.
  int descriptor() const { return epoll_.get(); }
  /// Takes in what programs have sent, and programs that have come.
  /// Also drops programs that have gone, or have not said who they are.
  void serve(uint64_t now_ns);
  /// Says goodbye to all programs.
  void leave(uint64_t now_ns);

  // mesh::Courier::Sink
  void on_packet(uint32_t source, std::span<const std::byte> packet) override;
  void on_end_of_packets() override;

  size_t n_programs() const { return programs_.size(); }
  const Counts& counts() const { return counts_; }

 private:
  struct Program {
    std::unique_ptr<link::StreamEndpoint> endpoint;
    uint64_t since_ns = 0;
    std::optional<link::OverlayClaim> claim;
    std::deque<std::vector<std::byte>> waiting;  // packets that its stream had no room for
    size_t waiting_bytes = 0;
    bool is_written = false;  // since the last flush
  };

  void accept(uint64_t now_ns);
  /// Of a socket that was accepted, whose descriptor is duplicated. Throws base::Error.
  void add_program(int socket, uint64_t now_ns);
  /// On stderr, once a minute at most.
  void say_refused(const std::string& why, uint64_t now_ns);
  /// False, with errno: epoll refuses.
  bool watch_listener(int operation, uint32_t events);
  void serve(Program& program, uint64_t now_ns);
  void learn_claim(Program& program);
  void keep_early(std::span<const std::byte> packet);
  bool is_over(const Program& program, uint64_t now_ns) const;
  /// A packet of a program here: on to its destination.
  void forward(std::span<const std::byte> packet);
  /// One for a program here.
  void deliver(std::span<const std::byte> packet);
  void hand_over(Program& program, std::span<const std::byte> packet);
  void write_waiting(Program& program);
  std::vector<std::byte> greeting() const;

  const std::string path_;
  const uint32_t node_;
  const uint32_t n_nodes_;
  mesh::Courier* courier_ = nullptr;
  std::vector<uint32_t> nodes_;  // [rank of the courier]
  base::UniqueFd epoll_;
  base::UniqueFd listener_;
  uint64_t paused_until_ns_ = 0;     // nobody is accepted until then; 0: everybody
  uint64_t say_again_ns_ = 0;        // say_refused() is silent until then
  std::map<int, Program> programs_;  // by the descriptor of the endpoint
  struct Early {
    uint64_t since_ns = 0;
    std::vector<std::byte> packet;
  };
  std::deque<Early> early_;  // in order of their coming
  size_t early_bytes_ = 0;
  std::vector<std::byte> copy_;  // of a packet whose prefix changes
  Counts counts_;
};

}  // namespace ringbolt::tools::agent

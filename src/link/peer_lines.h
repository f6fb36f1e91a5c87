#pragma once

#include <atomic>
#include <memory>

#include "link/peer_events.h"
#include "link/peer_log.h"
#include "link/peer_table.h"

namespace ringbolt::link {

/// What this process tells each peer first. The descriptors belong to the rendezvous.
struct Greeting {
  EncodedMessage hello;
  std::array<int, 3> descriptors;
  bool is_yama_restricted = false;

  /// Before the Hello, so that the other side's probe of our memory succeeds.
  void allow_access_for(pid_t pid) const;
};

/// A line for a connected socket, not yet in the table nor watched.
std::shared_ptr<Line> make_line(base::UniqueFd fd, pid_t pid, PeerTable& table, const PeerEvents& events);

/// What is said on the connections: who they belong to, which message is allowed when, how they end. Tells the sink.
/// Not thread-safe: for the dispatching thread, except stop().
/// Calls the sink without any lock of this layer held, so that it may send.
class PeerLines {
 public:
  /// Everything must outlive it.
  PeerLines(RendezvousSink& sink, PeerTable& table, PeerEvents& events, const Greeting& greeting, uint32_t own_slot);

  /// Enters an accepted connection.
  void take(base::UniqueFd fd);
  /// Turned away before it was taken.
  void note_refusal(pid_t pid, std::string_view reason) { log_.dropped(own_slot_, pid, reason); }
  /// An event of line `id`, as epoll reports it.
  void serve(uint64_t id, uint32_t events);
  /// The process of peer `id` ended.
  void bury(uint64_t id);
  /// Sends what sockets did not take before.
  void retry();

  /// From now on nothing is told. Thread-safe.
  void stop() { is_stopped_.store(true, std::memory_order_release); }

 private:
  enum class Step { again, idle, over };

  Step step(const std::shared_ptr<Line>& line);
  bool handle(const std::shared_ptr<Line>& line, const Message& message, Datagram& datagram);
  bool greet(const std::shared_ptr<Line>& line, const Hello& hello, Datagram& datagram);
  void welcome(const std::shared_ptr<Line>& line);
  void welcome_parked(uint32_t slot);
  void join_parked(const std::shared_ptr<ConnectedPeer>& peer);
  void make_ready(Line& line);
  void lose(const std::shared_ptr<Line>& line);
  void finish(const std::shared_ptr<ConnectedPeer>& peer);
  bool is_stopped() const { return is_stopped_.load(std::memory_order_acquire); }

  RendezvousSink& sink_;
  PeerTable& table_;
  PeerEvents& events_;
  const Greeting& greeting_;
  const uint32_t own_slot_;
  PeerLog log_;
  std::atomic<bool> is_stopped_{false};
};

}  // namespace ringbolt::link

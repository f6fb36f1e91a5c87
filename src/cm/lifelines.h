#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cm/types.h"
#include "wire/lifeline.h"

namespace ringbolt::cm {

/// A process of ours on another host: a number that it made up when it began.
using Token = uint64_t;

/// Which processes at the other ends of our connections are Ringbolt's, and so can have a lifeline with us: a TCP
/// connection over which nothing is said. The kernel of a process that dies closes it, whoever or whatever killed the
/// process and whether any other of ours is left on its host, and no other thing ends it in that way
/// (docs/design-notes.md, "Death over a network"). Here is the agreement on lines, their sockets are elsewhere: pure,
/// as Engine is. Not thread-safe.
///
/// The active side of a connection offers a line to the passive one, by datagrams that strangers drop; the passive one
/// answers, and the active one calls. One line serves all connections between two processes. Called under the
/// connection manager's lock, like Engine. Throws std::bad_alloc.
class Lifelines {
 public:
  /// Where a process can be reached.
  struct Place {
    uint32_t port = 0;  ///< our number for the device, as in Path
    wire::Address local{};
    wire::Address remote{};
    uint16_t tcp_port = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  /// What is to be done about lines.
  struct Order {
    enum class Kind : uint8_t {
      expect,  ///< the process may call us, and its line may be looked after at `place`
      call,    ///< we call it
      drop,    ///< our call is not needed any more
      forget,  ///< nobody needs to hear of it
    };
    Kind kind = Kind::expect;
    Token token = 0;
    Place place{};
    friend bool operator==(const Order&, const Order&) = default;
  };

  /// At which TCP port we can be called at path.local; 0: at none. Asked when the first one has reason to.
  using PortAt = std::function<uint16_t(const Path& path)>;

  Lifelines(Token own, PortAt port_at) : own_(own), port_at_(std::move(port_at)) {}

  /// A connection stands whose peer is on another host, or in another network namespace of ours. One of the same
  /// handle is replaced.
  void add(uint64_t now_ns, const Standing& connection);
  /// Of an unknown handle nothing happens. A line that nobody uses any more stays for a while.
  void remove(uint64_t now_ns, Handle handle);
  /// True: it was about lifelines.
  bool receive(uint64_t now_ns, const Arrival& arrival);
  void on_timer(uint64_t now_ns);
  uint64_t next_deadline_ns() const { return timers_.empty() ? UINT64_MAX : timers_.begin()->first; }

  /// The process is dead. Its connections, which are forgotten here. Empty: nothing is known of it.
  std::vector<Handle> take_dead(Token token);
  /// Its line broke, and that says nothing of the process: another one is agreed on, a few times.
  void on_broken(uint64_t now_ns, Token token);

  std::vector<Outgoing> take_outgoing() { return std::exchange(outgoing_, {}); }
  /// In order; each is to be carried out once.
  std::vector<Order> take_orders() { return std::exchange(orders_, {}); }
  size_t size() const { return connections_.size(); }
  size_t processes() const { return processes_.size(); }

 private:
  struct Connection {
    Standing standing;
    Token token = 0;     ///< of the peer, once it is known
    uint32_t tries = 0;  ///< offers that were sent
    uint64_t deadline_ns = UINT64_MAX;
  };
  struct Process {
    std::set<Handle> handles{};
    // Only one of two processes calls: the one that was active in the connection that came first.
    bool is_called = false;
    uint32_t broken = 0;
    uint64_t deadline_ns = UINT64_MAX;  ///< for the end of a line that nobody uses
  };
  /// Connections have handles, processes have none.
  using Timer = std::pair<uint64_t, std::pair<Handle, Token>>;

  void offer(const Connection& connection, bool is_answer);
  void associate(Connection& connection, const wire::LifelineOffer& from);
  void set_deadline(Handle handle, Connection& connection, uint64_t deadline_ns);
  void set_deadline(Token token, Process& process, uint64_t deadline_ns);
  void erase(Token token);

  const Token own_;
  const PortAt port_at_;
  std::unordered_map<Handle, Connection> connections_;
  std::map<Token, Process> processes_;
  std::set<Timer> timers_;
  std::vector<Outgoing> outgoing_;
  std::vector<Order> orders_;
};

}  // namespace ringbolt::cm

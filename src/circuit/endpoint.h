#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "circuit/handle.h"
#include "circuit/incoming.h"
#include "circuit/outgoing.h"
#include "circuit/relays.h"
#include "circuit/surroundings.h"
#include "circuit/tasks.h"
#include "membership/membership.h"
#include "verbs/library.h"

namespace ringbolt::circuit {

/// All is copied by Endpoint.
struct EndpointPlan {
  std::string verbs = "auto";  ///< verbs::Library::open()
  NodeId node = 0;
  std::string name = {};    ///< of this process, for messages
  std::string group = {};   ///< membership::MembershipPlan
  std::string secret = {};  ///< likewise
  std::string folder = {};  ///< likewise
  bool has_checksums = false;
  // How long a member may say nothing before it counts as gone.
  uint32_t most_silent_ms = 800;
  Way way = Way::automatic;
  uint64_t least_written_bytes = 64 * 1024;  ///< Ways
};

/// This process among others that exchange messages: listens, connects to whoever has given it a handle, and relays for
/// others. Knows nothing of a job, of ranks, or of who will come.
///
/// A handle leads to its process wherever that is; circuits go over the cables, by way of other members if none leads
/// there, and never over the network by which members find each other. Has three threads: the membership's, one that
/// makes and mends circuits, and, once it relays, one for that. Thread-safe; nothing blocks but construction and
/// destruction, nor waits for any of these threads. Circuits may outlive it: they keep devices and registrations, and
/// end without it.
class Endpoint final : public membership::User {
 public:
  /// Opens the library, looks at all ports (up to some seconds), and begins. Throws base::Error: no port can be used.
  /// `log` is called by all of these threads and by the program's; by Registrations also after the destructor.
  Endpoint(const EndpointPlan& plan, Log log);
  /// Waits for what has been sent to be taken, 2 s at most. Circuits end. Not while another thread is in one of its
  /// calls. Afterwards circuits that programs still hold fail, or stay as they are: nobody moves them on.
  ~Endpoint() override;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Those that could carry circuits when this began; more may have come up since.
  const std::vector<bringup::PortCard>& ports() const { return ports_; }

  /// Memory for messages that go straight from there, or there; null: all go by frames, and nothing is registered.
  std::shared_ptr<Registrations> registrations() const { return ways_.is_direct ? registrations_ : nullptr; }

  /// A listener, and the handle that leads to it. Returns its number, never 0. Circuits that come are kept until
  /// accept() or close_listener().
  uint64_t listen(std::span<std::byte, kHandleBytes> handle) RINGBOLT_EXCLUDES(calls_lock_);
  /// Circuits that were opened and not accepted are closed; those that were accepted stay. No such listener: nothing
  /// happens.
  void close_listener(uint64_t listener) RINGBOLT_EXCLUDES(calls_lock_);
  /// The next circuit that has been opened to the listener; null: none has, or the endpoint's thread is about to say
  /// so. What is accepted is open. The caller ends it by Incoming::close(), then wake().
  std::shared_ptr<Incoming> accept(uint64_t listener) RINGBOLT_EXCLUDES(calls_lock_);

  /// Begins to connect, or goes on: call it again with the same memory until the answer is ready() or is_refused().
  /// Null: this is no handle. Writes a ticket into the handle's last bytes, by which the next call finds what was
  /// begun. The same memory in two threads at once is not for this.
  std::shared_ptr<Outgoing> connect(std::span<std::byte, kHandleBytes> handle) RINGBOLT_EXCLUDES(calls_lock_);
  /// Forgets a connection that was begun and is ready or refused: the caller has it now.
  void hand_over(CircuitId circuit) RINGBOLT_EXCLUDES(calls_lock_);

  /// Something may be done by the endpoint's thread: a circuit has been closed.
  void wake() { tasks_.wake(); }

  // membership::User In the membership's thread, which must not wait: each leaves a task, and the endpoint's thread
  // does it.
  void on_member(const membership::Announcement& announcement) override;
  void on_gone(MemberId member, const std::string& name, const std::string& why) override;
  void on_message(MemberId from, uint16_t kind, std::span<const std::byte> bytes) override;

 private:
  /// Circuits that have been opened to a listener and not been accepted yet.
  // Shared by both maps below: the program's threads take out, the endpoint's thread puts in, each with `lock` held
  // for a moment.
  struct Listener {
    base::Mutex lock;
    std::deque<std::shared_ptr<Incoming>> opened RINGBOLT_GUARDED_BY(lock);
  };

  void run();
  bool run_tasks(bool may_wait);
  void step_all(bool is_tick);
  bool step(const std::shared_ptr<Incoming>& one, bool is_tick);
  void look_around();

  // Of the endpoint's thread.
  void dispatch(MemberId from, const Control& control);
  void hear(MemberId from, const Open& open);
  void hear(MemberId from, const RailOpen& open);
  void hear_ready(MemberId from, const RailReady& ready);
  void hear_down(const RailDown& down);
  void hear_gone(MemberId member, const std::string& name, const std::string& why);
  void relay(const RailOpen& open);

  const EndpointPlan plan_;
  const verbs::Library library_;
  const std::shared_ptr<Devices> devices_;
  const std::vector<bringup::PortCard> ports_;
  const Ways ways_;
  const std::shared_ptr<Registrations> registrations_;
  const MemberId self_;
  // Of the endpoint's thread, once there is one.
  Network network_;

  Tasks tasks_;
  /// Of the program's calls alone.
  base::Mutex calls_lock_;
  std::map<CircuitId, std::shared_ptr<Outgoing>> connecting_ RINGBOLT_GUARDED_BY(calls_lock_);
  std::map<uint64_t, std::shared_ptr<Listener>> accepting_ RINGBOLT_GUARDED_BY(calls_lock_);
  // Set once, by the destructor, after its last task: the thread that sees it has that task before it, or takes it in
  // its next round.
  std::atomic<bool> is_ending_ = false;

  // Of the endpoint's thread.
  std::map<CircuitId, std::shared_ptr<Outgoing>> outgoing_;
  std::map<CircuitId, std::shared_ptr<Incoming>> incoming_;
  std::map<uint64_t, std::shared_ptr<Listener>> listeners_;
  std::map<std::pair<CircuitId, uint16_t>, std::shared_ptr<RelayedRail>> being_relayed_;  ///< until both ends answer
  uint64_t now_ns_ = 0;

  // Destroyed after relays_ and membership_, which may still hand something over; after that its thread has run.
  Endings endings_;
  std::unique_ptr<Relays> relays_;
  std::unique_ptr<membership::Membership> membership_;
  Surroundings in_;
  // The last member: all else is there when it begins. The destructor joins it first.
  std::thread thread_;
};

}  // namespace ringbolt::circuit

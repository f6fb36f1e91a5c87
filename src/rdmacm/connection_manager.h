#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "abi/management.h"
#include "base/condition.h"
#include "base/unique_fd.h"
#include "cm/engine.h"
#include "cm/lifelines.h"
#include "rdmacm/devices.h"
#include "rdmacm/lines.h"
#include "rdmacm/objects.h"

/// What librdmacm.so.1 is made of: the state machines of src/cm, a thread that feeds them, and the C functions of
/// <rdma/rdma_cma.h> around them.
namespace ringbolt::rdmacm {

/// The connection manager of this process. Made at the first use, never destroyed: programs call us from their own
/// destructors. One mutex guards all of it, identifiers and channels included (`manager_lock`); calls into libibverbs
/// are made under it except those that wait for the program. Thread-safe where it says so. Owned by this class are
/// devices, engine, lines and its thread; identifiers and channels are the program's, by pointer, and only registered
/// here. Functions that require the lock never give it away, but for wait().
class ConnectionManager final : private cm::Host {
 public:
  /// The one of this process; a forked child gets a new one. Thread-safe.
  static ConnectionManager& get();

  base::Mutex& mutex() RINGBOLT_RETURNS_LOCK(manager_lock) { return mutex_; }
  /// Belongs to the parent of this process: nothing of it can be used any more.
  bool is_dead() const { return is_dead_.load(std::memory_order_relaxed); }

  /// Opens the devices and starts the thread; 0 or an errno. Later calls take up addresses that
  /// have come or gone. May block for as long as opening the devices takes. After an error it may be called again.
  int start() RINGBOLT_REQUIRES(manager_lock);
  /// Empty before start(); so is what needs the engine.
  const Devices& devices() const RINGBOLT_REQUIRES(manager_lock) { return devices_; }
  cm::Engine& engine() RINGBOLT_REQUIRES(manager_lock) { return *engine_; }
  /// base::now_ns(): the clock of the engine.
  uint64_t now() const;
  /// Sends and tells what the engine has brought forth, and wakes the thread if it sleeps too long. After every engine
  /// call. Throws nothing: what there is no memory for is done by the thread a millisecond later. May be called
  /// within engine calls of nobody.
  void settle() RINGBOLT_REQUIRES(manager_lock);
  /// Takes what has come and the thread has not looked at yet. Before an end: a peer that the program has heard from by
  /// its data has said "ready to use" earlier, and a connection ends otherwise than an attempt at one.
  void catch_up() RINGBOLT_REQUIRES(manager_lock);

  /// Never 0, which means none.
  uint64_t next_token() RINGBOLT_REQUIRES(manager_lock) { return ++last_token_; }
  /// The maps do not own: the identifier is taken out before it goes (detach_id()). Throws std::bad_alloc.
  void add_listener(uint64_t token, Id& id) RINGBOLT_REQUIRES(manager_lock) { listeners_[token] = &id; }
  void remove_listener(uint64_t token) RINGBOLT_REQUIRES(manager_lock) { listeners_.erase(token); }
  void add_connection(cm::Handle handle, Id& id) RINGBOLT_REQUIRES(manager_lock) { connections_[handle] = &id; }
  void remove_connection(cm::Handle handle) RINGBOLT_REQUIRES(manager_lock) { connections_.erase(handle); }
  /// Held back until the received data was read.
  void drop_held(const Id& id) RINGBOLT_REQUIRES(manager_lock);
  /// Waits until `condition`, which somebody's settle() or ack makes true. Gives the lock away meanwhile. Without a
  /// limit: what it waits for is the program's doing.
  template <class Condition>
  void wait(Condition condition) RINGBOLT_REQUIRES(manager_lock) {
    changed_.wait(mutex(), condition);
  }
  void notify() { changed_.notify_all(); }

  /// A port number of this process that is free in the port space, from the ephemeral range; 0 when all are taken.
  /// `port_space`: an rdma_port_space. Of this process alone: another one's are known by ringbolt_management_bind().
  uint16_t take_ephemeral_port(uint16_t port_space) RINGBOLT_REQUIRES(manager_lock);
  void take_port(uint16_t port_space, uint16_t port) RINGBOLT_REQUIRES(manager_lock) { ++ports_[{port_space, port}]; }
  /// Once for each take; others of this process may have the same (RDMA_OPTION_ID_REUSEADDR).
  void release_port(uint16_t port_space, uint16_t port) RINGBOLT_REQUIRES(manager_lock);

  /// Keeps a destroyed channel for a while: a thread may be about to look at it. The last 64; then the oldest goes.
  void retire(std::unique_ptr<Channel> channel) RINGBOLT_REQUIRES(manager_lock);
  /// Identifiers of requests that were rejected and never destroyed go with the channel that they came on.
  void drop_rejected(const Channel& channel) RINGBOLT_REQUIRES(manager_lock);

  /// At exit: says good-bye to all peers, and gives the network a moment for it. Takes the lock itself. Blocks for
  /// 0.2 s at most, and does nothing the second time.
  void leave() RINGBOLT_EXCLUDES(manager_lock);

 private:
  ConnectionManager() = default;

  // Handlers of pthread_atfork(3): in the thread that forks, the last one in the child.
  static void before_fork();
  static void in_parent();
  static void in_child();

  // cm::Host: called by the engine, and so under the lock. A port is the place of its device.
  uint64_t guid(uint32_t port) const override RINGBOLT_REQUIRES(manager_lock) { return devices_.at(port).facts.guid; }
  wire::Address first_gid(uint32_t port) const override RINGBOLT_REQUIRES(manager_lock) {
    return devices_.at(port).first_gid();
  }
  bool owns_gid(uint32_t port, const wire::Address& gid) const override RINGBOLT_REQUIRES(manager_lock) {
    return devices_.at(port).index_of(gid).has_value();
  }
  bool is_local(uint32_t port, const wire::Address& address) const override RINGBOLT_REQUIRES(manager_lock) {
    return devices_.stands_for(port, address);
  }
  bool routes_back(uint32_t port, const wire::Address& local, const wire::Address& remote) const override
      RINGBOLT_REQUIRES(manager_lock);

  void run() RINGBOLT_EXCLUDES(manager_lock);
  void receive_all() RINGBOLT_REQUIRES(manager_lock);
  void send_outgoing() RINGBOLT_REQUIRES(manager_lock);
  void send(const std::vector<cm::Outgoing>& all) RINGBOLT_REQUIRES(manager_lock);
  // lifelines.cpp
  uint16_t line_port(const cm::Path& path) RINGBOLT_REQUIRES(manager_lock);
  void note_standings() RINGBOLT_REQUIRES(manager_lock);
  void carry_out(const cm::Lifelines::Order& order) RINGBOLT_REQUIRES(manager_lock);
  void settle_lifelines() RINGBOLT_REQUIRES(manager_lock);
  void look_at_lines() RINGBOLT_REQUIRES(manager_lock);
  void tell_all() RINGBOLT_REQUIRES(manager_lock);
  void tell(const cm::Event& event) RINGBOLT_REQUIRES(manager_lock);
  void tell_request(const cm::Event& event) RINGBOLT_REQUIRES(manager_lock);
  void release_held(uint64_t now_ns) RINGBOLT_REQUIRES(manager_lock);
  uint64_t next_wake_ns(uint64_t now_ns) const RINGBOLT_REQUIRES(manager_lock);

  /// What a connection's program should find in its completion queues before it hears of the end.
  enum class Owed : uint8_t { nothing, answers, polling };
  Owed owes_completions(const Id& id) const RINGBOLT_REQUIRES(manager_lock);
  /// DISCONNECTED or REJECTED of a connection that owes its program something.
  struct Held {
    Id* id;
    std::unique_ptr<QueuedEvent> event;
    uint64_t until_ns;          ///< not longer than this
    uint64_t answers_until_ns;  ///< nor than this for answers alone
    uint64_t read_since_ns;     ///< 0: not all is read yet
  };

  // Also guards what programs read in the C structures while calls of theirs change it.
  base::Mutex mutex_;
  base::Condition changed_;
  std::atomic<bool> is_dead_{false};
  bool is_started_ RINGBOLT_GUARDED_BY(manager_lock) = false;
  bool has_left_ RINGBOLT_GUARDED_BY(manager_lock) = false;
  Devices devices_ RINGBOLT_GUARDED_BY(manager_lock);
  std::unique_ptr<cm::Engine> engine_ RINGBOLT_GUARDED_BY(manager_lock);
  std::unique_ptr<cm::Lifelines> lifelines_ RINGBOLT_GUARDED_BY(manager_lock);
  std::atomic<Lines*> lines_{nullptr};  // never destroyed, as we are; a fork looks at it without the lock
  std::map<uint64_t, Id*> listeners_ RINGBOLT_GUARDED_BY(manager_lock);
  std::map<cm::Handle, Id*> connections_ RINGBOLT_GUARDED_BY(manager_lock);
  std::list<Held> held_ RINGBOLT_GUARDED_BY(manager_lock);
  std::vector<cm::Event> untold_ RINGBOLT_GUARDED_BY(manager_lock);  ///< of the engine; told up to next_untold_
  size_t next_untold_ RINGBOLT_GUARDED_BY(manager_lock) = 0;
  std::array<std::unique_ptr<Channel>, 64> retired_ RINGBOLT_GUARDED_BY(manager_lock);
  size_t next_retired_ RINGBOLT_GUARDED_BY(manager_lock) = 0;
  std::map<std::pair<uint16_t, uint16_t>, uint32_t> ports_ RINGBOLT_GUARDED_BY(manager_lock);
  uint64_t last_token_ RINGBOLT_GUARDED_BY(manager_lock) = 0;
  uint64_t wakes_at_ns_ RINGBOLT_GUARDED_BY(manager_lock) = 0;
  // These two are written by start(), before there is a thread, and only read afterwards.
  base::UniqueFd bell_;
  std::thread thread_;
};

}  // namespace ringbolt::rdmacm

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/adaptive_mutex.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "device/drops.h"
#include "device/port.h"
#include "device/stream_ports.h"
#include "link/udp_batch.h"
#include "link/udp_endpoint.h"

namespace ringbolt::device {

class Process;
class Unattended;
struct Mad;

/// The network side of a process with ports on interfaces, or at streams: hands packets to queue pairs and management
/// datagrams to queue pair 1, and sends what they have built. Programs that poll read the sockets themselves; while
/// they do, the service thread stays away. Thread-safe.
/// Owned by the process. Whoever takes packets in holds a reading of the process' packet targets, so that no queue pair
/// that it finds ends meanwhile; locks of queue pairs are not taken on that way but for what nobody polls (attend()).
class Network {
 public:
  /// Opens the sockets. Throws base::Error. `process` must outlive it.
  Network(Process& process, const std::string& slots_directory, uint32_t slot);
  ~Network();

  /// A port of this process was opened: its faults begin, and what it drops is counted.
  void add(const Port& port);
  /// Takes up the faults of the cluster if its control page says that something has changed.
  void look_at_faults();
  Drops& drops() { return drops_; }
  /// The process ends: lets go of the packets that faults hold back. With RINGBOLT_LOG=debug says on standard error
  /// what was dropped, and which faults befell how many packets.
  void leave();

  /// A program polls: takes in what has come. Called without locks held; never blocks. False: nothing has.
  /// Any thread. `now_ns`: CLOCK_MONOTONIC, of just now.
  bool poll(uint64_t now_ns);
  /// The descriptor is readable: the service thread takes in what nobody polls for.
  /// Service thread only.
  void serve(uint64_t now_ns);
  int descriptor() const { return events_.get(); }

  /// Packets on their way out: of a network, or one packet's place on its way into a stream.
  /// One of the two is there: `datagrams` for interfaces, `packet` (link::kMaxUdpPacketBytes) for streams.
  struct Batch {
    std::unique_ptr<link::UdpBatch> datagrams;
    std::unique_ptr<std::byte[]> packet;
  };

  /// What became of a batch: packets that the port could not send, how many of them for their length, and how long it
  /// waited for room in the socket.
  struct Sent {
    uint64_t lost_packets = 0;
    uint64_t too_long_packets = 0;
    uint64_t waited_us = 0;
    Sent& operator+=(const Sent& more) {
      lost_packets += more.lost_packets;
      too_long_packets += more.too_long_packets;
      waited_us += more.waited_us;
      return *this;
    }
  };

  /// A batch of one's own for a while.
  /// Not thread-safe. Batches are kept for the next lease, and not given back to the system. Throws std::bad_alloc
  /// where it has to make one.
  class Lease {
   public:
    /// For packets of the port with that Port::netdev_index, and of its like.
    Lease(Network& network, uint32_t interface_index)
        : network_(&network), batch_(network.take_batch(is_stream(interface_index))) {}
    ~Lease() { network_->give_back(std::move(batch_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    /// A place for a packet of `bytes`; sends what is in the batch already if there is none. Empty: too long, or what
    /// is in the batch finds no room in the socket.
    /// `bytes`: BTH to pad. The place is good until the next call of any function of the lease.
    std::span<std::byte> reserve(size_t bytes) {
      const auto place = batch_.datagrams ? batch_.datagrams->reserve(bytes) : std::span<std::byte>();
      return place.empty() ? make_place(bytes) : place;
    }
    /// Takes the reserved packet's first `bytes` bytes, from BTH to pad.
    void commit(const link::UdpPath& path, size_t bytes);
    /// Sends what is in it. Never blocks, but for streams: what finds no room in the socket stays, in its order, for
    /// the next call. Also tells of what a full batch before it had to send.
    Sent send();
    /// How many packets are left; given back with the lease they are lost.
    size_t packet_count() const { return batch_.packet ? 0 : batch_.datagrams->packet_count(); }

   private:
    friend class Network;
    std::span<std::byte> make_place(size_t bytes);
    Network* network_;
    Batch batch_;
    Sent untold_;
    uint64_t waits_since_ns_ = 0;  // for room, as far as that was told; 0: it does not
  };

  /// See link::StreamHealth; 0 for what is at no stream.
  /// CLOCK_MONOTONIC.
  uint64_t excused_until_ns(uint32_t interface_index, uint64_t now_ns) const;

  /// A management datagram, to queue pair 1 at its destination. 0, ENETUNREACH, or EAGAIN while the socket is full.
  int send(const Port& port, const Mad& mad);

  /// The service thread looks at all queue pairs within 20 us to 1 ms, the latter where programs poll all the time.
  /// Thread-safe; a system call, unless it was asked for already.
  void look_soon();

  void abandon_after_fork();

 private:
  static bool is_stream(uint32_t interface_index) { return interface_index >= kFirstStreamInterface; }
  Batch take_batch(bool is_for_stream);
  void give_back(Batch batch);
  struct Look {
    bool is_alone = true;   ///< no other thread is at it
    bool has_some = false;  ///< packets have come
  };
  Look receive(uint64_t now_ns, bool is_on_service_thread);
  /// Hands it over. Completion queues that have to do with it, and that nobody polls, are valid as long as packet
  /// targets are read.
  void take(const link::UdpEndpoint::Arrived& arrived, uint64_t now_ns, bool is_on_service_thread,
            Unattended& unattended);
  void send_late();
  void report() const;
  void set_faults() RINGBOLT_REQUIRES(faults_lock_);
  void watch_sockets(bool wanted);
  bool take_address_news();

  Process& process_;
  std::unique_ptr<link::UdpEndpoint> endpoint_;  // null where no port is on an interface
  std::unique_ptr<StreamPorts> streams_;         // null where none is at a stream
  base::UniqueFd events_;                        // the packets' descriptors, the timer and the news of addresses
  base::UniqueFd address_news_;  // the kernel's, of interfaces; not open: it has none to tell, or would not
  base::UniqueFd timer_;
  // Relaxed, all of these: they tell the service thread whether to stay away, and a look too many does no harm.
  std::atomic<uint64_t> last_poll_ns_{0};
  std::atomic<uint32_t> next_mad_psn_{0};
  std::atomic<uint64_t> absence_ns_;  // written by the service thread
  // Sequentially consistent where it is set and cleared, so that each request finds the timer running or starts it.
  std::atomic<bool> is_look_due_{false};  // the timer runs
  bool is_watching_ = true;               // service thread only

  Drops drops_;
  // The locks of this class are leaves but for those of the endpoint and of the streams.
  base::Mutex faults_lock_;
  std::vector<link::UdpFaultPort> fault_ports_ RINGBOLT_GUARDED_BY(faults_lock_);
  std::atomic<uint32_t> faults_generation_{0};  // of the control page when the faults were read

  base::AdaptiveMutex batches_lock_;
  std::array<std::vector<Batch>, 2> batches_ RINGBOLT_GUARDED_BY(batches_lock_);  // of interfaces, of streams

  base::AdaptiveMutex late_lock_;                              // only ever tried
  std::optional<Lease> late_ RINGBOLT_GUARDED_BY(late_lock_);  // what faults held back and what then found no room
  std::atomic<bool> has_late_{false};
};

}  // namespace ringbolt::device

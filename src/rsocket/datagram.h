#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "rsocket/blocking_socket.h"
#include "rsocket/datagram_link.h"
#include "rsocket/datagram_path.h"
#include "rsocket/options.h"
#include "rsocket/unread_datagrams.h"

namespace ringbolt::rsocket {

/// A datagram socket: a UDP socket, by which two ends learn each other's queue pairs (the first datagrams go that way),
/// and a UD queue pair per address of this host that it talks through. Unreliable, as datagrams are. Thread-safe.
/// Owns the UDP socket, whose number is the program's, and its links. Peers are never forgotten, so that pointers to
/// them stay good.
class Datagram final : public BlockingSocket {
 public:
  static base::Result<std::shared_ptr<Socket>> create(int family);

  int descriptor() const override { return udp_.get(); }
  Status bind(const Address& address) override;
  Status connect(const Address& address) override;
  Status listen(int) override { return base::fail(EOPNOTSUPP); }
  base::Result<std::shared_ptr<Socket>> accept() override { return base::fail(EOPNOTSUPP); }
  Status shut_down(int how) override;
  void close() override;
  base::Result<size_t> send(IoCursor from, int flags, const Address* to) override;
  base::Result<size_t> receive(IoCursor to, int flags, Address* from) override;
  base::Result<Address> peer_name() override;
  base::Result<Address> own_name() override;
  Status set_option(int level, int name, const void* value, socklen_t length) override;
  Status get_option(int level, int name, void* value, socklen_t* length) override;

 private:
  /// Somebody we talk to. Without a handle, his queue pair is not known yet, and UDP serves.
  struct Peer {
    DatagramLink* link = nullptr;
    AddressHandle handle;
    uint32_t qpn = 0;
  };

  Datagram(base::UniqueFd udp, int family) : udp_(std::move(udp)), family_(family) {
    options_.settings = default_settings();
  }

  base::Result<Peer*> peer_at(const Address& address) RINGBOLT_REQUIRES(lock_);
  base::Result<DatagramLink*> link_at(const Address& local) RINGBOLT_REQUIRES(lock_);
  base::Result<Address> local_towards(const Address& remote) const RINGBOLT_REQUIRES(lock_);
  int greet(const Address& to, const Peer& peer, GreetingHeader::Op op, IoCursor* bytes) RINGBOLT_REQUIRES(lock_);
  void take_greeting(const Address& from, std::span<const std::byte> datagram) RINGBOLT_REQUIRES(lock_);
  void deliver(const Address& from, std::span<const std::byte> bytes) RINGBOLT_REQUIRES(lock_);
  bool has_slots() const RINGBOLT_REQUIRES(lock_);
  /// As BlockingSocket::wait(); close() ends it with EBADF.
  template <class Done>
  Status wait_while_open(const timeval& timeout, int flags, Done done) RINGBOLT_REQUIRES(lock_);

  // What BlockingSocket asks for.
  void progress() override RINGBOLT_REQUIRES(lock_);
  short events_now(short events) const override RINGBOLT_REQUIRES(lock_);
  bool arm() override RINGBOLT_REQUIRES(lock_);
  void add_waits(std::vector<pollfd>& waits) const override RINGBOLT_REQUIRES(lock_);
  void take_events() override RINGBOLT_REQUIRES(lock_);

  base::UniqueFd udp_;
  const int family_;
  Options options_ RINGBOLT_GUARDED_BY(lock_);
  bool is_closed_ RINGBOLT_GUARDED_BY(lock_) = false;
  // null: not connected
  std::unique_ptr<Address> connected_ RINGBOLT_GUARDED_BY(lock_);
  std::vector<std::unique_ptr<DatagramLink>> links_ RINGBOLT_GUARDED_BY(lock_);
  std::map<Address, Peer> peers_ RINGBOLT_GUARDED_BY(lock_);
  UnreadDatagrams received_ RINGBOLT_GUARDED_BY(lock_);
};

}  // namespace ringbolt::rsocket

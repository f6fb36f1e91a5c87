#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "base/result.h"
#include "rsocket/address.h"
#include "rsocket/io_cursor.h"
#include "rsocket/sleeper.h"

namespace ringbolt::rsocket {

using Status = base::Result<void>;

/// What the calls of the API can do with a socket of any kind. A kind that has no use for a call refuses it as the
/// socket calls do. All calls are thread-safe.
/// Owned by the table and by calls under way, in shares. close() ends it for all; its number is given back by its
/// destructor.
class Socket {
 public:
  Socket() = default;
  virtual ~Socket() = default;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  /// The number that programs know it by: a descriptor that is open as long as the socket.
  virtual int descriptor() const = 0;

  virtual Status bind(const Address& address) = 0;
  virtual Status connect(const Address& address) = 0;
  virtual Status listen(int backlog) = 0;
  virtual base::Result<std::shared_ptr<Socket>> accept() = 0;
  virtual Status shut_down(int how) = 0;
  /// Ends everything; blocks while data is on its way to a peer that takes it, as long as SO_LINGER allows.
  virtual void close() = 0;

  /// `to`: null, or whom to send to instead of the peer.
  /// How many bytes: fewer than asked for only where an error or a deadline came after some were sent.
  virtual base::Result<size_t> send(IoCursor from, int flags, const Address* to) = 0;
  /// `from`: null, or where to put who sent it.
  /// 0: the peer sends no more.
  virtual base::Result<size_t> receive(IoCursor to, int flags, Address* from) = 0;

  virtual base::Result<Address> peer_name() = 0;
  virtual base::Result<Address> own_name() = 0;
  virtual Status set_option(int level, int name, const void* value, socklen_t length) = 0;
  virtual Status get_option(int level, int name, void* value, socklen_t* length) = 0;
  virtual int file_flags() const = 0;
  virtual Status set_file_flags(int flags) = 0;

  virtual base::Result<off_t> map(void*, size_t, int /*protection*/, off_t) { return base::fail(EOPNOTSUPP); }
  virtual Status unmap(void*, size_t) { return base::fail(EOPNOTSUPP); }
  virtual base::Result<size_t> write_mapped(IoCursor, off_t, int /*flags*/) { return base::fail(EOPNOTSUPP); }

  /// Does what can be done without waiting, and says which of `events` hold, as poll() does.
  virtual short poll(short events) = 0;
  /// As poll(); if nothing holds, adds what to sleep on to `waits` and rings `sleeper` when that is taken away by
  /// another thread, until end_sleep().
  virtual short begin_sleep(short events, Sleeper& sleeper, std::vector<pollfd>& waits) = 0;
  virtual void end_sleep(Sleeper& sleeper) = 0;
};

}  // namespace ringbolt::rsocket

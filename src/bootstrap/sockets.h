#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/resolving.h"
#include "base/unique_fd.h"
#include "bootstrap/config.h"

/// TCP sockets as all of this folder has them: close-on-exec, non-blocking, without delay.
namespace ringbolt::bootstrap {

using Address = base::SocketAddress;
using base::LookUp;
using base::resolve;
using base::Resolved;

/// Where rank 0 listens. Move-only.
struct Listening {
  std::vector<base::UniqueFd> sockets;
  uint16_t port = 0;
  std::string where;  ///< in words

  /// At the place that Config::bind_address describes; port 0 takes a free one. May ask the name service, and then
  /// blocks until `deadline_ns`. Throws base::Error.
  static Listening open(const std::string& host, uint16_t port, const std::string& bind_address,
                        uint64_t deadline_ns = UINT64_MAX, const LookUp& look_up = &::getaddrinfo);
  /// At all addresses of this machine, at a free port. Does not block. Throws base::Error.
  static Listening everywhere();
};

/// An accepted connection and the other end in words.
struct Accepted {
  base::UniqueFd socket;
  std::string peer;
  int error = 0;  ///< EAGAIN: nobody is waiting; EMFILE and the like: no descriptor is left
};
/// Does not block: the socket is non-blocking.
Accepted accept_from(int listening_fd);

/// A connection to `at`, or why there is none.
struct Dialled {
  base::UniqueFd socket;
  std::string peer;
  int error = 0;                  ///< of the last address
  bool have_all_refused = false;  ///< there are addresses, and at each the machine has said that nobody listens
  std::string problem;            ///< "10.0.0.1:4000: Connection refused"
  std::string advice;             ///< what to do about it; empty: nothing is known
};
/// Tries the addresses of a host one after the other, each for up to 2 s. Blocks until `deadline_ns`
/// (base::now_ns()). Without a socket `error` is not 0. A name is looked up anew each time: rank 0's machine may get
/// its name later.
Dialled dial(const HostPort& at, uint64_t deadline_ns, const LookUp& look_up = &::getaddrinfo);

/// A connection that has been begun and is made when the socket becomes writable, or why there is none.
struct Begun {
  base::UniqueFd socket;
  std::string peer;
  int error = 0;
};
/// Does not block.
Begun begin_dialling(const Address& at);
/// Of one that has become writable, or has failed: an errno, 0 if it is made.
int end_dialling(int fd);

/// What poll(2) should wait for to reach `deadline_ns`: 0 to `most_ms`, rounded up. UINT64_MAX: most_ms.
int milliseconds_until(uint64_t deadline_ns, int most_ms);

}  // namespace ringbolt::bootstrap

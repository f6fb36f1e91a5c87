#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/resolving.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "bridge/relay.h"
#include "stream/address.h"

namespace ringbolt::tools::bridge {

/// Where a bridge listens or connects to. A value.
struct Place {
  enum class Kind : uint8_t { tcp, unix_socket, rdma };
  Kind kind = Kind::tcp;
  std::string host;  ///< without brackets
  uint16_t port = 0;
  std::string path;  ///< of a UNIX socket

  /// "tcp:127.0.0.1:6379", "rdma:[fd77::1]:6379", "unix:/run/x.sock".
  std::string text() const;
  friend bool operator==(const Place&, const Place&) = default;
};

/// Of that text. Throws UsageError that names `option`.
/// Names are not looked up.
Place parse_place(const std::string& option, const std::string& text);

/// What the host of a place of TCP or RDMA stands for, one at least. Waits for the name service for five seconds at
/// most. Throws base::Error. `look_up`: as base::resolve() has it.
std::vector<stream::Address> addresses_of(const Place& place, const base::LookUp& look_up = &::getaddrinfo);

// Sockets of TCP and UNIX, none of which blocks.

/// A connected socket as a relay's end. Move-only. Not thread-safe.
/// Owns a non-blocking descriptor. SIGPIPE is not raised (MSG_NOSIGNAL).
class SocketOnDescriptor : public SocketEnd {
 public:
  explicit SocketOnDescriptor(base::UniqueFd fd) : fd_(std::move(fd)) {}
  base::Result<size_t> read(std::span<std::byte> into) override;
  base::Result<size_t> write(const Pieces& pieces) override;
  void shut_down() override;
  bool has_gone() override;

  int fd() const { return fd_.get(); }
  /// What became of connecting: 0, or an errno; nothing while it goes on.
  /// An error is told once, as SO_ERROR has it (socket(7)).
  std::optional<int> connected() const;
  /// Closes it; its peer of TCP gets an error instead of an end if `is_abrupt`.
  void close(bool is_abrupt);

 private:
  base::UniqueFd fd_;
};

/// A socket that listens, and the file of one of UNIX, which goes with it. Move-only. Not thread-safe.
class ListeningSocket {
 public:
  /// Of a place of TCP or UNIX. A file of UNIX is for its owner alone (0600) from the first moment on; one that nobody
  /// listens at any more is replaced, any other is left alone. Throws UsageError that names `option`.
  ListeningSocket(const std::string& option, const Place& place);
  ~ListeningSocket();
  ListeningSocket(ListeningSocket&& other) noexcept = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;

  int fd() const { return fd_.get(); }
  /// Where it listens: with the port that it got.
  const Place& place() const { return place_; }
  /// The next connection, and of TCP who it is; EAGAIN: there is none; EMFILE and the like.
  base::Result<base::UniqueFd> accept(stream::Address& peer);

 private:
  void listen_tcp(const std::string& option);
  void listen_unix(const std::string& option);

  base::UniqueFd fd_;
  Place place_;
  std::string file_;  // of UNIX; empty: none is ours
  uint64_t inode_ = 0;
};

/// Begins to connect. EINPROGRESS is no error: the socket is writable when it is known. EAGAIN: of UNIX, the listener
/// has too many who wait.
base::Result<base::UniqueFd> connect_tcp(stream::Address address);
base::Result<base::UniqueFd> connect_unix(const std::string& path);

}  // namespace ringbolt::tools::bridge

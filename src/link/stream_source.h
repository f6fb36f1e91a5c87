#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace ringbolt::link {

/// An open stream of bytes, both ways. Never blocks.
struct OpenStream {
  base::UniqueFd in;
  base::UniqueFd out;  ///< not open: the same as `in`
  bool is_socket = false;
  bool is_pipe = false;        ///< a write without a reader raises SIGPIPE
  bool is_in_packets = false;  ///< a character device: whole frames are best written one by one

  int write_descriptor() const { return out.is_open() ? out.get() : in.get(); }
};

/// Where a rail gets its stream from, at the start and after it ended. Not thread-safe.
/// Owned by a StreamEndpoint. What open() gives is the caller's.
class StreamSource {
 public:
  virtual ~StreamSource() = default;
  /// Never blocks. Errors: EAGAIN (nobody has connected yet), ENODEV (it was there once and can't come again), or what
  /// the system said: then try again later.
  virtual base::Result<OpenStream> open() = 0;
  /// Readable when it is worth calling open() again; -1: only time tells.
  virtual int listener() const { return -1; }
  /// Another stream may be had by closing this one.
  virtual bool can_reopen() const { return true; }
};

/// From what a user writes. Throws base::Error that says what is wrong.
///
///     fd:3                     an open descriptor: a connected socket, a terminal, /dev/tbstreamN
///     fd:3,4                   two: read from the first, write to the second (pipes)
///     unix:/path               connects;  unix-listen:/path   waits for the peer to connect
///     tcp:HOST:PORT            connects;  tcp-listen:HOST:PORT, tcp-listen::PORT for all addresses
///     /dev/tbstream0           opens a device or terminal
std::unique_ptr<StreamSource> make_stream_source(const std::string& text);

/// What is open already: takes it over. A character device can be used again after its end of file.
base::Result<OpenStream> adopt_stream(base::UniqueFd in, base::UniqueFd out);

}  // namespace ringbolt::link

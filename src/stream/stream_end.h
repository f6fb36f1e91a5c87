#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "stream/address.h"
#include "stream/close_reason.h"

namespace ringbolt::stream {

/// How a stream ended: once, for one reason. Not thread-safe: under the stream's lock.
class StreamEnd {
 public:
  bool has_come() const { return reason_ != CloseReason::none; }
  CloseReason reason() const { return reason_; }
  /// What happened, in words; empty before the end, or where no memory was left for them.
  const std::string& words() const { return words_; }
  /// What a call answers: an errno, 0 before the end.
  int error() const;
  /// What a call answers that finds nothing more to read: no bytes if the peer has closed it.
  base::Result<size_t> answer_to_read() const;
  /// One of the two sides closed it, as programs do.
  bool is_ordinary() const { return reason_ == CloseReason::peer_closed || reason_ == CloseReason::local; }

  /// `reason`: not none. `name`: of the peer; empty, its address serves. `device`: its name; empty, none was found.
  /// `what`: more than the reason says, or empty. No effect if it has come before.
  void come(CloseReason reason, const std::string& name, const Address& peer, std::string_view device,
            std::string_view what);

 private:
  CloseReason reason_ = CloseReason::none;
  std::string words_;
};

}  // namespace ringbolt::stream

#include "stream/stream_end.h"

#include <new>

#include <fmt/format.h>

#include "stream/end_words.h"

namespace ringbolt::stream {

int StreamEnd::error() const { return errno_of(reason_); }

base::Result<size_t> StreamEnd::answer_to_read() const {
  if (reason_ == CloseReason::peer_closed) {
    return size_t{0};
  }
  return base::fail(error());
}

void StreamEnd::come(CloseReason reason, const std::string& name, const Address& peer, std::string_view device,
                     std::string_view what) {
  if (has_come()) {
    return;
  }
  reason_ = reason;
  try {
    words_ =
        fmt::format("{}{}{}: {}: {}{}{}{}", name.empty() ? peer.text() : name, device.empty() ? "" : " through ",
                    device, name_of(reason), words_of(reason), what.empty() ? "" : " (", what, what.empty() ? "" : ")");
  } catch (const std::bad_alloc&) {
    words_.clear();  // the reason alone has to do
  }
}

}  // namespace ringbolt::stream

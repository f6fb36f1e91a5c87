#include "output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace ringbolt::tools {

void LineSplitter::feed(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const size_t room = kMaxLineBytes - begun_.size();
    const size_t taken = std::min({newline, bytes.size(), room});
    begun_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (taken == newline) {
      bytes.remove_prefix(1);
      out += prefix_ + begun_ + '\n';
      begun_.clear();
    } else if (begun_.size() == kMaxLineBytes) {
      finish(out);
    }
  }
}

void LineSplitter::finish(std::string& out) {
  if (!begun_.empty()) {
    out += prefix_ + begun_ + '\n';
    begun_.clear();
  }
}

bool OutputQueue::write_some() {
  // After POLLOUT a pipe takes PIPE_BUF bytes without blocking, also if others write to it.
  const ssize_t put = ::write(fd_, bytes_.data(), std::min<size_t>(bytes_.size(), PIPE_BUF));
  if (put < 0) {
    error_ = errno == EINTR || errno == EAGAIN ? 0 : errno;
    return error_ == 0;
  }
  bytes_.erase(0, static_cast<size_t>(put));
  return true;
}

}  // namespace ringbolt::tools
